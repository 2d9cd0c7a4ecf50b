"""The steps of test/slow/rdma/run and what they share. Needs nothing but Python's standard library."""
