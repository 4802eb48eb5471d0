//! A model provider that does not exist: deterministic answers, latency and limits.
