timeout 100 build/tests/test_transport rc 2 2>&1
