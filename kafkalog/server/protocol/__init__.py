"""What all answers are made of: requests and error codes."""
