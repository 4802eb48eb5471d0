//! How good is it? Suites, cases, trials, artifacts, aggregation and verdicts.
