"""The answers to requests, a function for each, by their keys."""
