//! Text and JSON of a race.

use super::branches::RaceParts;
use crate::arguments::AnswerScope;
use crate::printer::chain;
use bakeoff_agent::{LoopId, LoopStatus};
use bakeoff_core::{NanoDollars, Usage, one_line};
use bakeoff_race::{
    BranchFailure, ParallelLoopOutcome, ParallelLoopResult, RaceError, Verdict, VerdictKind,
};
use serde_json::{Value, json};
use std::time::Duration;

/// Renderer that names branches and judges as the user did.
pub(super) struct RaceRenderer {
    /// Names of the branches.
    names: Vec<String>,
    /// Loop-id segment and name of each judge.
    judges: Vec<(String, String)>,
    loop_ids: Vec<LoopId>,
}

impl RaceRenderer {
    pub(super) fn new(parts: &RaceParts, loop_ids: &[LoopId]) -> RaceRenderer {
        let (names, judges) = (parts.names.clone(), parts.judges.clone());
        RaceRenderer { names, judges, loop_ids: loop_ids.to_vec() }
    }

    /// Returns the name of a branch or judge.
    pub(super) fn name(&self, loop_id: &LoopId) -> String {
        let index = self.loop_ids.iter().position(|own| own == loop_id);
        match index.and_then(|index| self.names.get(index)) {
            Some(name) => name.clone(),
            None => {
                let segment = loop_id.segment();
                let judge = self.judges.iter().find(|(own, _)| own == segment);
                format!("judge {}", judge.map_or(segment, |(_, name)| name))
            }
        }
    }

    fn branch(&self, index: usize) -> &str {
        self.names.get(index).map_or("?", String::as_str)
    }

    /// Replaces loop ids in a text by the names of their branches and judges.
    fn replace_ids(&self, text: &str) -> String {
        let numbered = |id: &LoopId| format!("{}.{}", id.segment(), id.number());
        let mut named: Vec<(String, &str)> = (self.loop_ids.iter().zip(&self.names))
            .flat_map(|(id, name)| [(numbered(id), &**name), (id.segment().to_owned(), &**name)])
            .chain(self.judges.iter().map(|(segment, name)| (segment.clone(), &**name)))
            .collect();
        // Longest first, because an id may be a prefix of another.
        named.sort_by_key(|(id, _)| std::cmp::Reverse(id.len()));
        let is_part = |letter: char| letter.is_alphanumeric() || letter == '-';
        let mut rest = text;
        let mut out = String::new();
        while let Some(next) = rest.chars().next() {
            let is_start = !out.ends_with(|letter: char| is_part(letter) || letter == '.');
            let found = named.iter().find_map(|(id, name)| {
                let after = rest.strip_prefix(id.as_str()).filter(|_| is_start)?;
                (!after.starts_with(is_part)).then_some((*name, after))
            });
            rest = match found {
                Some((name, after)) => {
                    out.push_str(name);
                    after
                }
                None => {
                    out.push(next);
                    &rest[next.len_utf8()..]
                }
            };
        }
        out
    }

    /// Returns whether a loop is a branch rather than a judge.
    pub(super) fn is_branch(&self, loop_id: &LoopId) -> bool {
        self.loop_ids.contains(loop_id)
    }

    /// Describes why no branch won.
    pub(super) fn failure(&self, error: &RaceError) -> String {
        let RaceError::AllFailed { failures, .. } = error else {
            return self.replace_ids(&chain(error));
        };
        let describe = |failure: &BranchFailure| {
            format!("{}: {}", self.branch(failure.config_index), failure.reason)
        };
        match failures.as_slice() {
            [failure] => describe(failure),
            failures => {
                let all: Vec<String> = failures.iter().map(describe).collect();
                format!("all models failed: {}", all.join("; "))
            }
        }
    }

    /// Describes the winner and the reasons; empty for a race of one branch.
    pub(super) fn verdict(&self, result: &ParallelLoopResult) -> Vec<String> {
        if result.all_outcomes.is_empty() {
            return Vec::new();
        }
        let Verdict { strategy, kind, reasons, fallback, .. } = &result.verdict;
        let (winner, reason) = (self.branch(result.selected_index), describe_kind(strategy, *kind));
        let mut lines = vec![match kind.is_conclusive() {
            true => format!("winner: {winner} ({strategy}: {reason})"),
            false => format!("no winner ({strategy}: {reason}); by fallback: {winner}"),
        }];
        let mut printed: Vec<&String> = Vec::new();
        for reason in reasons.iter().filter(|reason| Some(*reason) != fallback.as_ref()) {
            // A judge often gives the same reason in both orders.
            if !printed.contains(&reason) {
                lines.push(format!("  reason: {}", one_line(&self.replace_ids(reason))));
                printed.push(reason);
            }
        }
        if let Some(fallback) = fallback {
            lines.push(format!("  fallback: {}", one_line(&self.replace_ids(fallback))));
        }
        let selected = &result.selected;
        lines.push(format!(
            "  {} · total {}{} tokens, {}",
            figures(selected.elapsed, selected.usage, selected.cost),
            // The provider may charge for branches that were cancelled.
            if unaccounted_calls(result) > 0 { "at least " } else { "" },
            result.total_usage.total(),
            format_cost(total_cost(result)),
        ));
        lines
    }

    /// Returns the answers in this scope.
    pub(super) fn answers(&self, result: &ParallelLoopResult, scope: AnswerScope) -> Vec<String> {
        if scope == AnswerScope::Winner {
            return vec![result.answer()];
        }
        let winner = (result.selected_index, result.answer());
        self.all_answers(&result.all_outcomes, Some(winner))
    }

    /// Returns the answers of all branches, each below its name.
    pub(super) fn all_answers(
        &self,
        others: &[ParallelLoopOutcome],
        winner: Option<(usize, String)>,
    ) -> Vec<String> {
        let others = others.iter().map(|other| {
            let text = match other.failure_reason() {
                Some(trouble) => format!("({trouble})"),
                None => other.answer(),
            };
            (other.config_index, text, "")
        });
        let winner = winner.map(|(index, text)| (index, text, " (winner)"));
        let mut answers: Vec<(usize, String, &str)> = others.chain(winner).collect();
        answers.sort_by_key(|(index, _, _)| *index);
        let lines = answers
            .into_iter()
            .flat_map(|(index, text, mark)| [format!("--- {}{mark}", self.branch(index)), text]);
        lines.collect()
    }

    /// Returns the result as the fields of the `done` event.
    pub(super) fn to_json(&self, result: &Result<ParallelLoopResult, RaceError>) -> Value {
        let mut json = json!({ "winner": null });
        let others = match result {
            Ok(result) => {
                let selected = &result.selected;
                json["winner"] = json!({
                    "config_index": result.selected_index,
                    "model": self.branch(result.selected_index),
                    "loop_id": selected.loop_id,
                    "answer": result.answer(),
                    "usage": selected.usage,
                    "cost_nanodollars": selected.cost,
                    "elapsed_ms": milliseconds(selected.elapsed),
                    "status": LoopStatus::Completed,
                    "finish": selected.finish,
                });
                json["verdict"] = json!(result.verdict);
                json["evaluation_usage"] = json!(result.evaluation_usage);
                json["total_usage"] = json!(result.total_usage);
                json["total_cost_nanodollars"] = json!(total_cost(result));
                json["unaccounted_calls"] = json!(unaccounted_calls(result));
                result.all_outcomes.as_slice()
            }
            Err(error) => {
                json["error"] = json!(error.to_string());
                json["total_usage"] = json!(error.total_usage());
                if let RaceError::NoneAcceptable { verdict, .. } = error {
                    json["verdict"] = json!(verdict);
                }
                error.outcomes()
            }
        };
        json["others"] = others.iter().map(|other| self.outcome_to_json(other)).collect();
        json
    }

    fn outcome_to_json(&self, outcome: &ParallelLoopOutcome) -> Value {
        json!({
            "config_index": outcome.config_index,
            "model": self.branch(outcome.config_index),
            "loop_id": outcome.loop_id,
            "status": outcome.status,
            "answer": outcome.answer(),
            "usage": outcome.usage,
            "cost_nanodollars": outcome.cost,
            "elapsed_ms": milliseconds(outcome.elapsed),
            "unaccounted_calls": outcome.unaccounted_calls,
            "finish": outcome.finish,
        })
    }
}

/// Returns the cost of all branches and the evaluation; `None` if a price is unknown.
fn total_cost(result: &ParallelLoopResult) -> Option<NanoDollars> {
    let others = result.all_outcomes.iter().map(|other| other.cost);
    let mut all = others.chain([result.selected.cost, result.verdict.cost]);
    all.try_fold(NanoDollars(0), |sum, cost| Some(sum.saturating_add(cost?)))
}

/// Returns the number of calls with unknown cost.
fn unaccounted_calls(result: &ParallelLoopResult) -> u32 {
    result.all_outcomes.iter().map(|other| other.unaccounted_calls).sum()
}

/// Describes how a branch or judge ended, on one line.
pub(super) fn loop_end(
    status: &LoopStatus,
    elapsed: Duration,
    usage: Usage,
    cost: Option<NanoDollars>,
) -> String {
    let figures = figures(elapsed, usage, cost);
    match status {
        LoopStatus::Completed => format!("done · {figures}"),
        LoopStatus::Failed(failure) => {
            format!("failed · {figures} · {}", one_line(&failure.to_string()))
        }
        LoopStatus::Cancelled => format!("cancelled · {figures}"),
        LoopStatus::LimitReached(limit) => format!("{limit} · {figures}"),
    }
}

fn figures(elapsed: Duration, usage: Usage, cost: Option<NanoDollars>) -> String {
    format!("{:.1} s · {} tokens · {}", elapsed.as_secs_f64(), usage.total(), format_cost(cost))
}

fn format_cost(cost: Option<NanoDollars>) -> String {
    cost.map_or("price unknown".to_owned(), |cost| cost.to_string())
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn describe_kind(strategy: &str, kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Decided => "decided",
        VerdictKind::Unopposed => "only one answer",
        VerdictKind::Tie => "tie",
        VerdictKind::Unparseable if strategy == "majority" => "no answer extracted",
        VerdictKind::Unparseable => "judge reply unparseable",
        VerdictKind::NoQuorum => "no quorum",
        VerdictKind::JudgeFailed => "judge failed",
        VerdictKind::BudgetExhausted => "budget exhausted",
        VerdictKind::Inconclusive => "no result from the verifier",
        _ => "no acceptable answer",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_agent::Session;

    #[test]
    fn loop_ids_in_reasons_become_branch_names() {
        let session = Session::named("s");
        let renderer = RaceRenderer {
            names: ["sim/a", "sim/a.b", "sim/x #1", "sim/x #2"].map(str::to_owned).to_vec(),
            judges: Vec::new(),
            loop_ids: ["sim.a", "sim.a-b", "sim.x", "sim.x"]
                .map(|name| session.next_loop(name))
                .into(),
        };
        let table = [
            ("sim.a beats sim.a-b.", "sim/a beats sim/a.b."),
            ("sim.x.4 beats sim.x.3, too", "sim/x #2 beats sim/x #1, too"),
            (
                "xsim.a, my.sim.a and sim.ab are others: é",
                "xsim.a, my.sim.a and sim.ab are others: é",
            ),
        ];
        for (text, expected) in table {
            assert_eq!(renderer.replace_ids(text), expected);
        }
    }
}
