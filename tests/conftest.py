"""What all tests share. The fixtures are those of `tenure.testing`, which users have too."""

pytest_plugins = ["tenure.testing"]
