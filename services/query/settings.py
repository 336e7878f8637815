"""Settings of the query role."""

from __future__ import annotations

from pydantic import Field

from services.kernel.settings import LayeredSettings


class QuerySettings(LayeredSettings):
    """What the query role needs beside the node's settings.

    Attributes:
        query_lane_timeout_s: A lane that takes longer is left out, and the reply says so.
        query_sign_timeout_s: An answer goes out unsigned, and says so, when signing takes longer.
    """

    query_lane_timeout_s: float = Field(default=10.0, gt=0, le=60)
    query_sign_timeout_s: float = Field(default=10.0, gt=0, le=60)
