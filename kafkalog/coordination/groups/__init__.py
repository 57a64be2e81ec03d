"""Rules of group coordinators."""
