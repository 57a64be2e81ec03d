"""DataFrame to DataFrame: groups, joins and orders. No session, file or clock."""
