"""Who may connect: TLS, users and their passwords, the mechanisms of SASL."""
