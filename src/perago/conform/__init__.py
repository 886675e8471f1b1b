"""``perago conform``: a foreign worker is driven through the protocol on running servers (Q17)."""
