"""Tools of MCP servers: a client that believes nothing a server says about itself without a bound or a check.

Here live the servers an owner names (`servers`, `config`), the connection to one (`connection`, over `stdio` or
`http`), what its tools become (`listing`, `calls`, `results`), the pins that hold them to what was first seen (`pins`),
and OAuth (`oauth`, `login`). No server is started that the owner did not name: nothing here looks for a file by itself.

The package `mcp` is optional (`pip install 'wakeful[mcp]'`) and is loaded with the first connection.
"""
