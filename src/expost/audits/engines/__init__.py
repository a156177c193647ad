"""How an audit gets at whole subjects: in one process, or on a cluster."""
