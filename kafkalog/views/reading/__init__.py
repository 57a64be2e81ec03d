"""The rows of views, as a task reads them."""
