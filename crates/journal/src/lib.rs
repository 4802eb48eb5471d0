//! What has already happened? Append-only JSON lines, torn-tail recovery and atomic files.
