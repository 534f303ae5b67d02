"""What several suites of tests share, by subject. Nothing here is shipped: users have `wakeful.testing`."""
