"""The steps of test/rdma/run and what they share. Needs nothing but Python's standard library."""
