//! Failed requests whose cause is unclear: the rows, the provider, or the request settings.
//!
//! An outage, or a parameter that the model does not support, must not turn thousands of rows into
//! error rows. Such failures are therefore deferred until the model answers another request. Then
//! either the rows were the cause, or the outage is over. After too many failures in a row the job
//! stops, and the same command sends the requests again.

/// Consecutive failures after which a job stops.
const MAX_FAILURES: usize = 10;

/// Possible cause of a failure besides the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FailureCause {
    /// The provider: it throttled or failed until the retries ran out.
    Provider,
    /// A setting that all requests share.
    Settings,
}

/// Decision about failures.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum FailureDecision<T> {
    /// The rows have no answer. Failures caused by the provider may be retried once, because it answers
    /// again.
    Accept(Vec<(T, FailureCause)>),
    /// The cause is not known yet.
    Defer,
    /// All requests fail; holds the last failure.
    Abort(T),
}

/// Failures of unclear cause, and what is known about the model.
#[derive(Debug)]
pub(super) struct DeferredFailures<T> {
    /// Whether the model has ever answered a request with these settings.
    supports_settings: bool,
    /// Whether the model has answered this process.
    is_up: bool,
    failures: Vec<(T, FailureCause)>,
}

impl<T> Default for DeferredFailures<T> {
    fn default() -> DeferredFailures<T> {
        DeferredFailures { supports_settings: false, is_up: false, failures: Vec::new() }
    }
}

impl<T> DeferredFailures<T> {
    /// Records an answer of the model and returns all deferred failures: the rows caused them.
    pub(super) fn record_answer(&mut self) -> Vec<(T, FailureCause)> {
        (self.supports_settings, self.is_up) = (true, true);
        self.take(|_| true)
    }

    /// Records an answer from the journal or the cache. It proves that the model supports the settings,
    /// not that the provider is up.
    pub(super) fn record_earlier_answer(&mut self) -> Vec<(T, FailureCause)> {
        self.supports_settings = true;
        self.take(|cause| cause == FailureCause::Settings)
    }

    /// Records a failure and decides about it.
    pub(super) fn record_failure(&mut self, failure: T, cause: FailureCause) -> FailureDecision<T> {
        if cause == FailureCause::Settings && self.supports_settings {
            return FailureDecision::Accept(vec![(failure, cause)]);
        }
        if self.failures.len() + 1 >= MAX_FAILURES {
            self.failures.clear();
            return FailureDecision::Abort(failure);
        }
        self.failures.push((failure, cause));
        FailureDecision::Defer
    }

    /// Decides about all deferred failures once no request is in flight. A provider that only failed
    /// and answered nothing is down, however few requests there were.
    pub(super) fn decide_idle(&mut self) -> FailureDecision<T> {
        let is_outage = self.failures.iter().all(|(_, cause)| *cause == FailureCause::Provider);
        let mut failures = self.take(|_| true);
        match failures.pop() {
            Some((last, _)) if is_outage && !self.is_up => FailureDecision::Abort(last),
            last => {
                failures.extend(last);
                FailureDecision::Accept(failures)
            }
        }
    }

    fn take(&mut self, is_taken: impl Fn(FailureCause) -> bool) -> Vec<(T, FailureCause)> {
        let (taken, left) = self.failures.drain(..).partition(|(_, cause)| is_taken(*cause));
        self.failures = left;
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::FailureCause::{Provider, Settings};
    use super::FailureDecision::{Abort, Accept, Defer};
    use super::*;

    #[test]
    fn failures_are_deferred_until_another_request_is_answered() {
        let mut deferred = DeferredFailures::default();
        assert_eq!(deferred.record_failure(1, Provider), Defer);
        assert_eq!(deferred.record_failure(2, Settings), Defer);
        assert_eq!(deferred.record_answer(), [(1, Provider), (2, Settings)]);
        assert_eq!(deferred.record_failure(3, Settings), Accept(vec![(3, Settings)]));
        assert_eq!(deferred.record_failure(4, Provider), Defer);
        assert_eq!(deferred.decide_idle(), Accept(vec![(4, Provider)]));
        assert_eq!(deferred.decide_idle(), Accept(vec![]));
    }

    #[test]
    fn earlier_answers_do_not_prove_that_the_provider_is_up() {
        let mut deferred = DeferredFailures::default();
        assert_eq!(deferred.record_failure(1, Provider), Defer);
        assert_eq!(deferred.record_failure(2, Settings), Defer);
        assert_eq!(deferred.record_earlier_answer(), [(2, Settings)]);
        assert_eq!(deferred.record_failure(3, Settings), Accept(vec![(3, Settings)]));
        assert_eq!(deferred.decide_idle(), Abort(1));
    }

    #[test]
    fn too_many_consecutive_failures_abort_the_job() {
        let mut deferred = DeferredFailures::default();
        for cause in [Provider, Settings] {
            for number in 1..MAX_FAILURES {
                assert_eq!(deferred.record_failure(number, cause), Defer);
            }
            assert_eq!(deferred.record_failure(MAX_FAILURES, cause), Abort(MAX_FAILURES));
        }
        assert_eq!(deferred.record_failure(1, Provider), Defer);
        assert_eq!(deferred.decide_idle(), Abort(1));
        assert_eq!(deferred.record_failure(1, Settings), Defer);
        assert_eq!(deferred.decide_idle(), Accept(vec![(1, Settings)]));
    }
}
