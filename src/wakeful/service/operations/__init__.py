"""What may be asked of the runtime about a store: one table, from which every surface takes its way.

    operation            one line of it: name, scope, request, answer, handler
    agents, turns, ...   a family each: what is asked with, what is answered, how it is done, and its lines
    table                all lines, by name

An operation has a name, a scope, a request and an answer, and says whether it changes something. A surface makes the
request, hands it to `bootstrap.store_operations` and puts the answer into words: it opens no store and calls no command
or query itself. A new command of the command line is an operation in the module of its family, and its words there.
Running a turn is none of them: it needs the code of an agent, which only the process that has it can give.

Rule: an operation whose scope is `observe` changes nothing but what time has decided already (an approval past its
time), and works on a store that can only be read. Handlers load what they need when they are called: a command pays for
itself alone.
"""
