//! A race in words and in JSON.

use super::setup::Ready;
use crate::arguments::Show;
use crate::printer::{Printer, chain, harmless};
use bakeoff_agent::{LoopId, LoopStatus};
use bakeoff_core::{ExitCode, NanoDollars, Redactor, Usage};
use bakeoff_race::{
    BranchFailure, ParallelLoopOutcome, ParallelLoopResult, RaceError, Verdict, VerdictKind,
};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Knows the branches by the names that the user gave them.
pub(super) struct Shown {
    names: Vec<String>,
    /// Judges by the names in the ids of their loops.
    judges: Vec<(String, String)>,
    loop_ids: Vec<LoopId>,
    redactor: Redactor,
}

impl Shown {
    pub(super) fn new(ready: &Ready, loop_ids: &[LoopId], redactor: Redactor) -> Shown {
        let (names, judges) = (ready.names.clone(), ready.judges.clone());
        Shown { names, judges, loop_ids: loop_ids.to_vec(), redactor }
    }

    /// A line of JSON without secrets: prompts may hold some.
    pub(super) fn print_json(&self, value: &impl Serialize, printer: &Printer) {
        match serde_json::to_string(value) {
            Ok(json) => printer.answer(self.redactor.scrub(json)),
            Err(error) => printer.error(format!("cannot write JSON: {error}"), None),
        }
    }

    /// Who a loop is: a branch, or else a judge.
    pub(super) fn name(&self, loop_id: &LoopId) -> String {
        let place = self.loop_ids.iter().position(|own| own == loop_id);
        match place.and_then(|place| self.names.get(place)) {
            Some(name) => name.clone(),
            None => {
                let segment = loop_id.segment();
                let judge = self.judges.iter().find(|(own, _)| own == segment);
                format!("judge {}", judge.map_or(segment, |(_, name)| name))
            }
        }
    }

    fn branch(&self, place: usize) -> &str {
        self.names.get(place).map_or("?", String::as_str)
    }

    /// A text with the names that the user gave instead of those in the ids of loops.
    fn by_name(&self, text: &str) -> String {
        let numbered = |id: &LoopId| format!("{}.{}", id.segment(), id.number());
        let mut named: Vec<(String, &str)> = (self.loop_ids.iter().zip(&self.names))
            .flat_map(|(id, name)| [(numbered(id), &**name), (id.segment().to_owned(), &**name)])
            .collect();
        // A name may be the beginning of another one.
        named.sort_by_key(|(id, _)| std::cmp::Reverse(id.len()));
        let plain = |letter: char| letter.is_alphanumeric() || letter == '-';
        let mut rest = text;
        let mut out = String::new();
        while let Some(next) = rest.chars().next() {
            let is_start = !out.ends_with(|letter: char| plain(letter) || letter == '.');
            let found = named.iter().find_map(|(id, name)| {
                let after = rest.strip_prefix(id.as_str()).filter(|_| is_start)?;
                (!after.starts_with(plain)).then_some((*name, after))
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

    /// Whether a loop is a branch, and not a judge.
    pub(super) fn is_branch(&self, loop_id: &LoopId) -> bool {
        self.loop_ids.contains(loop_id)
    }

    /// How a loop ended, on one line.
    pub(super) fn end(
        status: &LoopStatus,
        elapsed: Duration,
        usage: Usage,
        cost: Option<NanoDollars>,
    ) -> String {
        let figures = figures(elapsed, usage, cost);
        match status {
            LoopStatus::Completed => format!("done · {figures}"),
            LoopStatus::Failed(failure) => {
                format!("failed · {figures} · {}", harmless(&failure.to_string()))
            }
            LoopStatus::Cancelled => format!("stopped · {figures}"),
            LoopStatus::LimitReached(limit) => format!("{limit} · {figures}"),
        }
    }

    /// Why nobody won, by the names that the user knows.
    pub(super) fn failure(&self, error: &RaceError) -> String {
        let RaceError::AllFailed { failures, .. } = error else {
            return self.by_name(&chain(error));
        };
        let one = |failure: &BranchFailure| {
            format!("{}: {}", self.branch(failure.config_index), failure.reason)
        };
        match failures.as_slice() {
            [failure] => one(failure),
            failures => {
                let all: Vec<String> = failures.iter().map(one).collect();
                format!("all models failed: {}", all.join("; "))
            }
        }
    }

    /// Who won, and why; nothing where there was nothing to win.
    pub(super) fn verdict(&self, result: &ParallelLoopResult) -> Vec<String> {
        if result.all_outcomes.is_empty() {
            return Vec::new();
        }
        let Verdict { strategy, kind, reasons, fallback, .. } = &result.verdict;
        let mut lines = vec![format!(
            "winner: {} ({strategy}: {})",
            self.branch(result.selected_index),
            words(*kind)
        )];
        let mut said: Vec<&String> = Vec::new();
        for reason in reasons.iter().filter(|reason| Some(*reason) != fallback.as_ref()) {
            // Judges often say the same in both orders.
            if !said.contains(&reason) {
                lines.push(format!("  why: {}", harmless(&self.by_name(reason))));
                said.push(reason);
            }
        }
        if let Some(fallback) = fallback {
            lines.push(format!("  decided instead: {}", harmless(&self.by_name(fallback))));
        }
        let selected = &result.selected;
        lines.push(format!(
            "  {} · in all {}{} tokens, {}",
            figures(selected.elapsed, selected.usage, selected.cost),
            // Who was stopped while it wrote may still be charged for.
            if unaccounted(result) > 0 { "at least " } else { "" },
            result.total_usage.total(),
            money(total_cost(result)),
        ));
        lines
    }

    /// The winner's answer, or everybody's.
    pub(super) fn answers(&self, result: &ParallelLoopResult, show: Show) -> Vec<String> {
        if show == Show::Winner {
            return vec![result.answer()];
        }
        let winner = (result.selected_index, result.answer());
        self.all_answers(&result.all_outcomes, Some(winner))
    }

    /// Everybody's answers, the winner's among them.
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
        let winner = winner.map(|(place, text)| (place, text, " (winner)"));
        let mut answers: Vec<(usize, String, &str)> = others.chain(winner).collect();
        answers.sort_by_key(|(place, _, _)| *place);
        let lines = answers
            .into_iter()
            .flat_map(|(place, text, crown)| [format!("--- {}{crown}", self.branch(place)), text]);
        lines.collect()
    }

    /// Everything, as the last line of `--json`.
    pub(super) fn json(
        &self,
        result: &Result<ParallelLoopResult, RaceError>,
        code: ExitCode,
    ) -> Value {
        let mut json = json!({ "type": "race_result", "exit_code": code.code() });
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
                json["unaccounted_calls"] = json!(unaccounted(result));
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
        json["others"] = others.iter().map(|other| self.outcome(other)).collect();
        json
    }

    fn outcome(&self, outcome: &ParallelLoopOutcome) -> Value {
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

/// Money for all branches and the evaluation; `None` when a price is unknown.
fn total_cost(result: &ParallelLoopResult) -> Option<NanoDollars> {
    let others = result.all_outcomes.iter().map(|other| other.cost);
    let mut all = others.chain([result.selected.cost, result.verdict.cost]);
    all.try_fold(NanoDollars(0), |sum, cost| Some(sum.saturating_add(cost?)))
}

/// Calls whose cost nobody knows.
fn unaccounted(result: &ParallelLoopResult) -> u32 {
    result.all_outcomes.iter().map(|other| other.unaccounted_calls).sum()
}

fn figures(elapsed: Duration, usage: Usage, cost: Option<NanoDollars>) -> String {
    format!("{:.1} s · {} tokens · {}", elapsed.as_secs_f64(), usage.total(), money(cost))
}

fn money(cost: Option<NanoDollars>) -> String {
    cost.map_or("price unknown".to_owned(), |cost| cost.to_string())
}

fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

fn words(kind: VerdictKind) -> &'static str {
    match kind {
        VerdictKind::Decided => "decided",
        VerdictKind::Unopposed => "no other answer to choose from",
        VerdictKind::Tie => "a tie",
        VerdictKind::Unparseable => "nobody can tell what the judge means",
        VerdictKind::JudgeFailed => "the judge failed",
        VerdictKind::Inconclusive => "inconclusive",
        _ => "none will do",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bakeoff_agent::Session;

    #[test]
    fn reasons_use_the_names_that_were_typed() {
        let session = Session::named("s");
        let shown = Shown {
            names: ["sim/a", "sim/a.b", "sim/x #1", "sim/x #2"].map(str::to_owned).to_vec(),
            judges: Vec::new(),
            redactor: Redactor::default(),
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
            assert_eq!(shown.by_name(text), expected);
        }
    }
}
