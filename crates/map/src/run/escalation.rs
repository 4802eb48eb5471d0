//! Escalation of failed rows in a pack: re-ask, split into halves, single rows, next model.
//!
//! The next requests for a pack depend only on the outcomes of its earlier requests. A resumed job
//! therefore sends the same requests as an uninterrupted one.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// Values of an answer as JSON text, in the order of the task's fields. Text keeps every digit when an
/// answer is read back from the journal.
pub(crate) type RowAnswer = Vec<Box<RawValue>>;

/// Path of the first request for a pack.
pub(crate) const FIRST_PATH: &str = "0";

/// One request for some rows of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackRequest {
    /// Index of the model round, from 0.
    pub(crate) model_round: usize,
    /// Name within the pack: the model round, then `a` or `b` for each split and `r` for a re-ask.
    pub(crate) path: String,
    /// Row positions within the pack.
    pub(crate) rows: Vec<usize>,
    /// The invalid reply that the model is asked to correct.
    pub(crate) reask: Option<InvalidReply>,
    /// Whether this is a retry after a failure of the provider.
    pub(crate) is_provider_retry: bool,
}

/// A reply that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct InvalidReply {
    /// Text of the reply.
    pub(crate) reply: String,
    /// The problem, as it is described to the model.
    pub(crate) problem: String,
}

/// Results of a request for each of its rows.
#[derive(Debug, Clone)]
pub(crate) struct RowResults {
    /// Answers or reasons why there is none, in the order of the request's rows.
    pub(crate) answers: Vec<Result<RowAnswer, String>>,
    /// Whether requests with fewer rows may succeed.
    pub(crate) can_split: bool,
    /// The reply, if no answer can be used and it is worth re-asking.
    pub(crate) invalid_reply: Option<InvalidReply>,
}

impl RowResults {
    /// Creates results in which all rows fail for the same reason.
    pub(crate) fn failed(reason: &str, rows: usize, can_split: bool) -> RowResults {
        RowResults { answers: vec![Err(reason.to_owned()); rows], can_split, invalid_reply: None }
    }

    /// Returns the reason of the first row without an answer.
    pub(crate) fn first_reason(&self) -> Option<&str> {
        self.answers.iter().find_map(|answer| answer.as_ref().err()).map(String::as_str)
    }
}

/// Number of model rounds: every round goes through all models in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RoundPlan {
    pub(crate) models: usize,
    pub(crate) rounds: usize,
}

impl RoundPlan {
    /// Returns whether no model round follows.
    pub(crate) fn is_last(self, model_round: usize) -> bool {
        model_round + 1 >= self.models.saturating_mul(self.rounds)
    }
}

/// Escalation state of a pack.
#[derive(Debug)]
pub(crate) struct Escalation {
    plan: RoundPlan,
    answers: Vec<Option<RowAnswer>>,
    /// Reasons why each row has no answer yet, one per model round.
    reasons: Vec<Vec<String>>,
    /// Rows that failed in the current model round.
    failed: Vec<usize>,
    /// Number of requests without results.
    pending: usize,
}

impl Escalation {
    /// Creates the state of a pack and its first request.
    pub(crate) fn new(rows: usize, plan: RoundPlan) -> (Escalation, PackRequest) {
        let escalation = Escalation {
            plan,
            answers: vec![None; rows],
            reasons: vec![Vec::new(); rows],
            failed: Vec::new(),
            pending: 1,
        };
        (
            escalation,
            PackRequest {
                model_round: 0,
                path: FIRST_PATH.to_owned(),
                rows: (0..rows).collect(),
                reask: None,
                is_provider_retry: false,
            },
        )
    }

    /// Records the results of a request and returns the requests that follow from them.
    pub(crate) fn record(
        &mut self,
        request: &PackRequest,
        results: RowResults,
    ) -> Vec<PackRequest> {
        if let (None, Some(invalid_reply)) = (&request.reask, results.invalid_reply) {
            let path = format!("{}r", request.path);
            return vec![PackRequest {
                path,
                reask: Some(invalid_reply),
                is_provider_retry: false,
                ..request.clone()
            }];
        }
        self.pending = self.pending.saturating_sub(1);
        let mut retried = Vec::new();
        for (row, answer) in request.rows.iter().zip(results.answers) {
            match answer {
                Ok(answer) => self.answers[*row] = Some(answer),
                Err(_) if results.can_split && request.rows.len() > 1 => retried.push(*row),
                Err(reason) => {
                    self.failed.push(*row);
                    self.reasons[*row].push(reason);
                }
            }
        }
        let mut next: Vec<PackRequest> = Vec::new();
        let (first, second) = retried.split_at(retried.len().div_ceil(2));
        for (half, rows) in [("a", first), ("b", second)] {
            if !rows.is_empty() {
                let path = format!("{}{half}", request.path);
                next.push(PackRequest {
                    model_round: request.model_round,
                    path,
                    rows: rows.to_vec(),
                    reask: None,
                    is_provider_retry: false,
                });
            }
        }
        self.pending += next.len();
        let model_round = request.model_round + 1;
        if self.pending == 0 && !self.failed.is_empty() && !self.plan.is_last(request.model_round) {
            let mut rows = std::mem::take(&mut self.failed);
            rows.sort_unstable();
            self.pending = 1;
            next.push(PackRequest {
                model_round,
                path: model_round.to_string(),
                rows,
                reask: None,
                is_provider_retry: false,
            });
        }
        next
    }

    /// Returns whether no request is pending: every row has an answer or has finally failed.
    pub(crate) fn is_finished(&self) -> bool {
        self.pending == 0
    }

    /// Returns the answers, or for failed rows the reasons from each model in the last round.
    pub(crate) fn into_answers(self) -> Vec<Result<RowAnswer, String>> {
        let models = self.plan.models;
        let join = |reasons: Vec<String>| match reasons.as_slice() {
            [] => "no request was sent".to_owned(),
            reasons => reasons[reasons.len().saturating_sub(models)..].join("; then: "),
        };
        let rows = self.answers.into_iter().zip(self.reasons);
        rows.map(|(answer, reasons)| answer.ok_or_else(|| join(reasons))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn results(answers: &[bool], can_split: bool) -> RowResults {
        let answer = |is_good: &bool| if *is_good { Ok(Vec::new()) } else { Err("no".to_owned()) };
        RowResults { answers: answers.iter().map(answer).collect(), can_split, invalid_reply: None }
    }

    fn show(requests: &[PackRequest]) -> Vec<String> {
        requests.iter().map(|request| format!("{} {:?}", request.path, request.rows)).collect()
    }

    #[test]
    fn failed_rows_are_split_into_halves_then_single_rows() {
        let (mut pack, first) = Escalation::new(6, RoundPlan { models: 2, rounds: 1 });
        let halves = pack.record(&first, results(&[true, false, false, true, false, false], true));
        assert_eq!(show(&halves), ["0a [1, 2]", "0b [4, 5]"]);
        let single = pack.record(&halves[1], results(&[true, false], true));
        assert_eq!(show(&single), ["0ba [5]"]);
        assert!(pack.record(&halves[0], results(&[true, true], true)).is_empty());
        // The last failed row goes to the next model.
        let other = pack.record(&single[0], results(&[false], true));
        assert_eq!(show(&other), ["1 [5]"]);
        assert!(!pack.is_finished());
        assert!(pack.record(&other[0], results(&[false], true)).is_empty());
        assert!(pack.is_finished());
        let answers = pack.into_answers();
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 5);
        assert_eq!(answers[5].as_ref().unwrap_err(), "no; then: no");
    }

    #[test]
    fn invalid_reply_is_reasked_once() {
        let (mut pack, first) = Escalation::new(2, RoundPlan { models: 1, rounds: 1 });
        let reply = InvalidReply { reply: "?".to_owned(), problem: "no items".to_owned() };
        let invalid =
            || RowResults { invalid_reply: Some(reply.clone()), ..results(&[false, false], true) };
        let second = pack.record(&first, invalid());
        assert_eq!(show(&second), ["0r [0, 1]"]);
        assert_eq!(second[0].reask.as_ref(), Some(&reply));
        let halves = pack.record(&second[0], invalid());
        assert_eq!(show(&halves), ["0ra [0]", "0rb [1]"]);
        assert!(halves.iter().all(|request| request.reask.is_none()));
        assert!(pack.record(&halves[0], results(&[true], true)).is_empty());
        assert!(pack.record(&halves[1], results(&[false], true)).is_empty() && pack.is_finished());
    }

    #[test]
    fn rows_are_not_split_if_splitting_cannot_help() {
        let (mut pack, first) = Escalation::new(3, RoundPlan { models: 2, rounds: 1 });
        let other = pack.record(&first, results(&[false, true, false], false));
        assert_eq!(show(&other), ["1 [0, 2]"]);
        assert!(pack.record(&other[0], results(&[false, false], false)).is_empty());
        assert!(pack.is_finished());
    }

    #[test]
    fn next_round_sends_failed_rows_to_all_models_again() {
        let (mut pack, first) = Escalation::new(2, RoundPlan { models: 2, rounds: 2 });
        let fail = |pack: &mut Escalation, request: &PackRequest, reason: &str| {
            pack.record(request, RowResults::failed(reason, request.rows.len(), false))
        };
        let mut request = first;
        for (index, reason) in ["a", "b", "c"].into_iter().enumerate() {
            request = fail(&mut pack, &request, reason).remove(0);
            let expected = (index + 1, (index + 1).to_string());
            assert_eq!((request.model_round, request.path.clone()), expected);
        }
        assert!(fail(&mut pack, &request, "d").is_empty() && pack.is_finished());
        assert_eq!(pack.into_answers()[0].as_ref().unwrap_err(), "c; then: d");
    }

    #[test]
    fn requests_do_not_depend_on_completion_order() {
        let fail = |request: &PackRequest| results(&vec![false; request.rows.len()], true);
        let all = |last_first: bool| {
            let (mut pack, first) = Escalation::new(9, RoundPlan { models: 2, rounds: 1 });
            let (mut waiting, mut sent) = (vec![first], Vec::new());
            while !waiting.is_empty() {
                let request = if last_first { waiting.pop().unwrap() } else { waiting.remove(0) };
                sent.push(format!("{} {:?}", request.path, request.rows));
                waiting.extend(pack.record(&request, fail(&request)));
            }
            assert!(pack.is_finished());
            sent.sort();
            sent
        };
        assert_eq!(all(true), all(false));
        // Two models, each with one request per node of a tree with nine leaves.
        assert_eq!(all(true).len(), 2 * 17);
    }
}
