"""What people are told of a stored event: one layer, from which every surface takes its words.

    plain_text        words of models and tools as text that nothing obeys
    event_details     what a raw event is about, beside its kind
    placements        how near to the operator a kind of event is, and where it belongs
    operator_events   one raw event as `OperatorEventPresentation`
    display_modes     info, verbose, debug: which presentations are shown, and how much of each
    replayed_events   an event with its provenance apart from its payload

Rule: pure functions of published events, so that the command line, notices, HTTP and screens cannot say different
things about one event. Secrets were hidden before an event comes here.
"""
