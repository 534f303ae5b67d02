"""The terminal UI, `wakeful tui`: a screen on the process that serves a home, and never a second one of it.

    home_client          what is asked of that process, through the socket of the home
    conversation         what was said, and what the turn of the newest message does; pure
    overview             agents, approvals and money, read and shown as rows and lines
    slash_commands       what a line that begins with / means, and what it does to one agent
    shown_times          times as the screen shows them
    screen_text          text of models and tools that does a screen no harm
    overlays             agents, transcript, tasks, events, help, actions
    wishes               what a key in an overlay comes to
    approval_overlay     what waits for somebody, and the keys that answer it
    composer             the line to type in; it is always there
    console              the application: keys, overlays, the loops that keep it up to date

Rule: it decides nothing and holds nothing of its own. Whatever it shows came over HTTP, in the words of
`views/presentation`; closing it changes nothing.
"""
