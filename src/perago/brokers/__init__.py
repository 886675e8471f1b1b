"""Workflow engines behind the ``Broker`` port."""
