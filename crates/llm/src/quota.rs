//! Rate-limit information of a response, in the terms of pace.

use bakeoff_core::Usage;
use bakeoff_pace::{Quota, TokenCost, read_quota};
use http::HeaderMap;
use std::time::{Duration, SystemTime};

/// Parses rate-limit headers. `retry_after` is the wait that the body asks for; a header overrides it.
pub(crate) fn parse(headers: &HeaderMap, retry_after: Option<Duration>) -> Quota {
    if headers.is_empty() {
        let retry_after = retry_after.filter(|wait| !wait.is_zero());
        return Quota { retry_after, ..Quota::default() };
    }
    let mut quota = read_quota(|name| headers.get(name)?.to_str().ok(), SystemTime::now());
    quota.retry_after = quota.retry_after.or(retry_after.filter(|wait| !wait.is_zero()));
    quota
}

/// Returns the tokens used, or `None` if the provider reported no usage.
pub(crate) fn cost(usage: &Usage) -> Option<TokenCost> {
    (usage.total() > 0).then(|| TokenCost { input: usage.prompt(), output: usage.output })
}
