//! What an answer tells the pool.

use bakeoff_core::Usage;
use bakeoff_pace::{Quota, TokenCost, read_quota};
use http::HeaderMap;
use std::time::{Duration, SystemTime};

/// Limits from the headers, with the wait that was asked for, which may have stood in the body.
pub(crate) fn read(headers: &HeaderMap, retry_after: Option<Duration>) -> Quota {
    if headers.is_empty() {
        let retry_after = retry_after.filter(|wait| !wait.is_zero());
        return Quota { retry_after, ..Quota::default() };
    }
    let mut quota = read_quota(|name| headers.get(name)?.to_str().ok(), SystemTime::now());
    quota.retry_after = quota.retry_after.or(retry_after.filter(|wait| !wait.is_zero()));
    quota
}

/// What it cost; `None` when the provider did not say.
pub(crate) fn used(usage: &Usage) -> Option<TokenCost> {
    (usage.total() > 0).then(|| TokenCost { input: usage.prompt(), output: usage.output })
}
