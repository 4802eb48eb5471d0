//! What is asked next about the rows of a pack: once more, halves, single rows, the next model,
//! nobody.
//!
//! Pure, and the same whatever else goes on: the next requests about a pack depend on the answers
//! to its earlier ones alone. So a job that was interrupted asks what it would have asked anyway.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The values of an answer as JSON text, in the order of the task's fields. As text, because it
/// must be the same to the last digit when it comes out of the journal again.
pub(crate) type Answer = Vec<Box<RawValue>>;

/// The path of the first request about a pack.
pub(crate) const FIRST: &str = "0";

/// One request about some rows of a pack.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// Whose turn it is, from 0.
    pub(crate) turn: usize,
    /// Its name within the pack: the turn, and then which half of which half.
    pub(crate) path: String,
    /// Places within the pack.
    pub(crate) rows: Vec<usize>,
    /// What is shown to the model once more, with what is wrong with it.
    pub(crate) repair: Option<Repair>,
    /// The provider was in trouble when it was asked before.
    pub(crate) is_second: bool,
}

/// A reply that will not do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repair {
    /// The reply.
    pub(crate) reply: String,
    /// What is wrong with it.
    pub(crate) problem: String,
}

/// What came of a request.
#[derive(Debug, Clone)]
pub(crate) struct Outcome {
    /// For each row that was asked about, in order.
    pub(crate) answers: Vec<Result<Answer, String>>,
    /// Whether fewer rows at once may help.
    pub(crate) divide: bool,
    /// There are no answers, and the model should see its reply again.
    pub(crate) repair: Option<Repair>,
}

impl Outcome {
    /// No row has an answer, for the same reason.
    pub(crate) fn failed(reason: &str, rows: usize, divide: bool) -> Outcome {
        Outcome { answers: vec![Err(reason.to_owned()); rows], divide, repair: None }
    }

    /// Why the first row without an answer has none.
    pub(crate) fn reason(&self) -> Option<&str> {
        self.answers.iter().find_map(|answer| answer.as_ref().err()).map(String::as_str)
    }
}

/// Who is asked: all models in their order, in every round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Turns {
    pub(crate) models: usize,
    pub(crate) rounds: usize,
}

impl Turns {
    /// Whether nobody comes after it.
    pub(crate) fn is_last(self, turn: usize) -> bool {
        turn + 1 >= self.models.saturating_mul(self.rounds)
    }
}

/// Where a pack is.
#[derive(Debug)]
pub(crate) struct Ladder {
    turns: Turns,
    answers: Vec<Option<Answer>>,
    /// Why each row has no answer yet, a reason per turn.
    reasons: Vec<Vec<String>>,
    /// Rows that got no answer in the present turn.
    failed: Vec<usize>,
    open: usize,
}

impl Ladder {
    /// A pack of so many rows, and the first request about it.
    pub(crate) fn new(rows: usize, turns: Turns) -> (Ladder, Node) {
        let ladder = Ladder {
            turns,
            answers: vec![None; rows],
            reasons: vec![Vec::new(); rows],
            failed: Vec::new(),
            open: 1,
        };
        (
            ladder,
            Node {
                turn: 0,
                path: FIRST.to_owned(),
                rows: (0..rows).collect(),
                repair: None,
                is_second: false,
            },
        )
    }

    /// Takes note of what came of a request; gives those that follow from it.
    pub(crate) fn settle(&mut self, node: &Node, outcome: Outcome) -> Vec<Node> {
        if let (None, Some(repair)) = (&node.repair, outcome.repair) {
            let path = format!("{}r", node.path);
            return vec![Node { path, repair: Some(repair), is_second: false, ..node.clone() }];
        }
        self.open = self.open.saturating_sub(1);
        let mut again = Vec::new();
        for (row, answer) in node.rows.iter().zip(outcome.answers) {
            match answer {
                Ok(answer) => self.answers[*row] = Some(answer),
                Err(_) if outcome.divide && node.rows.len() > 1 => again.push(*row),
                Err(reason) => {
                    self.failed.push(*row);
                    self.reasons[*row].push(reason);
                }
            }
        }
        let mut next: Vec<Node> = Vec::new();
        let (first, second) = again.split_at(again.len().div_ceil(2));
        for (half, rows) in [("a", first), ("b", second)] {
            if !rows.is_empty() {
                let path = format!("{}{half}", node.path);
                next.push(Node {
                    turn: node.turn,
                    path,
                    rows: rows.to_vec(),
                    repair: None,
                    is_second: false,
                });
            }
        }
        self.open += next.len();
        let turn = node.turn + 1;
        if self.open == 0 && !self.failed.is_empty() && !self.turns.is_last(node.turn) {
            let mut rows = std::mem::take(&mut self.failed);
            rows.sort_unstable();
            self.open = 1;
            next.push(Node { turn, path: turn.to_string(), rows, repair: None, is_second: false });
        }
        next
    }

    /// Whether every row has its answer, or will have none.
    pub(crate) fn is_over(&self) -> bool {
        self.open == 0
    }

    /// The answers, and for the other rows why there is none: what each model said in the last round.
    pub(crate) fn into_answers(self) -> Vec<Result<Answer, String>> {
        let models = self.turns.models;
        let reason = |reasons: Vec<String>| match reasons.as_slice() {
            [] => "it was not asked".to_owned(),
            reasons => reasons[reasons.len().saturating_sub(models)..].join("; then: "),
        };
        let rows = self.answers.into_iter().zip(self.reasons);
        rows.map(|(answer, reasons)| answer.ok_or_else(|| reason(reasons))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(answers: &[bool], divide: bool) -> Outcome {
        let answer = |good: &bool| if *good { Ok(Vec::new()) } else { Err("no".to_owned()) };
        Outcome { answers: answers.iter().map(answer).collect(), divide, repair: None }
    }

    fn shown(nodes: &[Node]) -> Vec<String> {
        nodes.iter().map(|node| format!("{} {:?}", node.path, node.rows)).collect()
    }

    #[test]
    fn good_rows_are_kept_and_the_rest_is_halved_then_asked_alone() {
        let (mut ladder, first) = Ladder::new(6, Turns { models: 2, rounds: 1 });
        let halves =
            ladder.settle(&first, outcome(&[true, false, false, true, false, false], true));
        assert_eq!(shown(&halves), ["0a [1, 2]", "0b [4, 5]"]);
        let alone = ladder.settle(&halves[1], outcome(&[true, false], true));
        assert_eq!(shown(&alone), ["0ba [5]"]);
        assert!(ladder.settle(&halves[0], outcome(&[true, true], true)).is_empty());
        // The last one that fails is for the next model, from the top.
        let other = ladder.settle(&alone[0], outcome(&[false], true));
        assert_eq!(shown(&other), ["1 [5]"]);
        assert!(!ladder.is_over());
        assert!(ladder.settle(&other[0], outcome(&[false], true)).is_empty());
        assert!(ladder.is_over());
        let answers = ladder.into_answers();
        assert_eq!(answers.iter().filter(|answer| answer.is_ok()).count(), 5);
        assert_eq!(answers[5].as_ref().unwrap_err(), "no; then: no");
    }

    #[test]
    fn a_reply_is_shown_again_once() {
        let (mut ladder, first) = Ladder::new(2, Turns { models: 1, rounds: 1 });
        let repair = Repair { reply: "?".to_owned(), problem: "no items".to_owned() };
        let bad = || Outcome { repair: Some(repair.clone()), ..outcome(&[false, false], true) };
        let second = ladder.settle(&first, bad());
        assert_eq!(shown(&second), ["0r [0, 1]"]);
        assert_eq!(second[0].repair.as_ref(), Some(&repair));
        let halves = ladder.settle(&second[0], bad());
        assert_eq!(shown(&halves), ["0ra [0]", "0rb [1]"]);
        assert!(halves.iter().all(|node| node.repair.is_none()));
        assert!(ladder.settle(&halves[0], outcome(&[true], true)).is_empty());
        assert!(ladder.settle(&halves[1], outcome(&[false], true)).is_empty() && ladder.is_over());
    }

    #[test]
    fn where_fewer_rows_do_not_help_nobody_is_asked_about_fewer() {
        let (mut ladder, first) = Ladder::new(3, Turns { models: 2, rounds: 1 });
        let other = ladder.settle(&first, outcome(&[false, true, false], false));
        assert_eq!(shown(&other), ["1 [0, 2]"]);
        assert!(ladder.settle(&other[0], outcome(&[false, false], false)).is_empty());
        assert!(ladder.is_over());
    }

    #[test]
    fn in_another_round_everybody_is_asked_again_about_what_is_left() {
        let (mut ladder, first) = Ladder::new(2, Turns { models: 2, rounds: 2 });
        let fail = |ladder: &mut Ladder, node: &Node, why: &str| {
            let answers = vec![Err(why.to_owned()); node.rows.len()];
            ladder.settle(node, Outcome { answers, divide: false, repair: None })
        };
        let mut node = first;
        for (turn, why) in ["a", "b", "c"].into_iter().enumerate() {
            node = fail(&mut ladder, &node, why).remove(0);
            assert_eq!((node.turn, node.path.clone()), (turn + 1, (turn + 1).to_string()));
        }
        assert!(fail(&mut ladder, &node, "d").is_empty() && ladder.is_over());
        assert_eq!(ladder.into_answers()[0].as_ref().unwrap_err(), "c; then: d");
    }

    #[test]
    fn what_is_asked_does_not_depend_on_what_ends_first() {
        let failing = |node: &Node| outcome(&vec![false; node.rows.len()], true);
        let all = |last_first: bool| {
            let (mut ladder, first) = Ladder::new(9, Turns { models: 2, rounds: 1 });
            let (mut waiting, mut asked) = (vec![first], Vec::new());
            while !waiting.is_empty() {
                let node = if last_first { waiting.pop().unwrap() } else { waiting.remove(0) };
                asked.push(format!("{} {:?}", node.path, node.rows));
                waiting.extend(ladder.settle(&node, failing(&node)));
            }
            assert!(ladder.is_over());
            asked.sort();
            asked
        };
        assert_eq!(all(true), all(false));
        // Two models, each with a request for every node of a tree with nine leaves.
        assert_eq!(all(true).len(), 2 * 17);
    }
}
