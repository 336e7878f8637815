"""Users of the embedded nats-server."""

from __future__ import annotations

# Whoever names no user may do everything; the reader can look up and follow, and publish to no stream.
USERS = """authorization {
  users: [
    { user: owner, password: owner }
    { user: reader, password: reader, permissions: {
      publish: ["$JS.API.STREAM.INFO.*", "$JS.API.STREAM.MSG.GET.*", "$JS.API.DIRECT.GET.>",
        "$JS.API.CONSUMER.CREATE.>", "$JS.API.CONSUMER.INFO.>", "$JS.API.CONSUMER.MSG.NEXT.>"]
      subscribe: "_INBOX.>"
    } }
  ]
}
no_auth_user: owner
"""
