"""Packages and bundles: agents and workflows that come from elsewhere, and runs of them."""
