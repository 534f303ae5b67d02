"""HTTP: the operations of the service as routes, for callers that were authenticated, and events as streams.

    guard               who asks, from where, with how much: everything that is refused is refused here
    operation_routes    routes made from the table of operations
    event_streams       server-sent events: from the log, then live
    ingress             deliveries to the addresses of triggers
    application         all of it as one application
    server              sockets, signals, drain

Nothing is decided here. A request becomes an operation, and its answer or its error becomes JSON.
"""
