"""Models behind the `Model` port: one folder a provider.

Here live requests and replies in a provider's own words. What is retried, sent elsewhere or given up is decided in
`decisions`; which provider a reference such as `scripted:demo` names is settled in `bootstrap`.
"""
