"""Commands about tables of records: writing, comparing, maintaining them."""
