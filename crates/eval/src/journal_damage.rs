//! Damage of a run's journal: lines that cannot be read, and the trials without a result.

use bakeoff_core::TrialKey;

/// Lines and trials that messages name.
const MAX_NAMED: usize = 10;

/// Code of the warning about a damaged journal.
pub const JOURNAL_DAMAGED: &str = "EVAL_JOURNAL_DAMAGED";

/// Lines of a journal that cannot be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JournalDamage {
    /// Numbers of damaged lines, from 1.
    pub lines: Vec<u64>,
    /// Whether the last line is incomplete.
    pub is_torn: bool,
    /// Whether the file is missing.
    pub is_missing: bool,
    /// Results that the summary of the run counts and the journal lacks.
    pub lacking: u64,
    /// Damaged lines before the last resume. It has repaired their damage, unless results are lacking.
    pub before_resume: Vec<u64>,
}

impl JournalDamage {
    /// Adds the number of an unreadable line.
    pub fn add_line(&mut self, line: u64) {
        self.lines.push(line);
    }

    /// Records that the run was resumed after the lines so far: trials without a result have run again since.
    pub fn resume(&mut self) {
        self.before_resume.append(&mut self.lines);
    }

    /// Ends the scan of a journal with `found` results, of which the summary of the run counts `expected`.
    #[must_use]
    pub fn finish(mut self, found: u64, expected: u64) -> JournalDamage {
        self.lacking = expected.saturating_sub(found);
        let mut before = std::mem::take(&mut self.before_resume);
        if self.lacking > 0 {
            before.append(&mut self.lines);
            self.lines = before;
        }
        self
    }

    /// Returns whether there is none.
    pub fn is_empty(&self) -> bool {
        *self == JournalDamage::default()
    }

    /// Describes the damage for users.
    pub fn describe(&self) -> String {
        let skipped = match self.lines.as_slice() {
            [] => None,
            [line] => Some(format!("skipped the unreadable line {line}")),
            lines => {
                let names = named(lines.iter().map(u64::to_string));
                Some(format!("skipped {} unreadable lines ({names})", lines.len()))
            }
        };
        let torn = self.is_torn.then(|| "skipped the incomplete last line".to_owned());
        let missing = self.is_missing.then(|| "missing".to_owned());
        // Damaged and torn lines explain what is lacking.
        let is_cut =
            self.lacking > 0 && !(self.is_missing || self.is_torn) && self.lines.is_empty();
        let results = if self.lacking == 1 { "result" } else { "results" };
        let cut =
            is_cut.then(|| format!("lacks {} {results} that summary.json counts", self.lacking));
        let parts: Vec<String> =
            missing.into_iter().chain(skipped).chain(torn).chain(cut).collect();
        format!("journal.jsonl: {}", parts.join(", "))
    }

    /// Describes the damage and the trials that run again because of it.
    pub(crate) fn describe_with(&self, missing: &[TrialKey]) -> String {
        let trials = match missing {
            [] => "no trial lacks a result".to_owned(),
            [key] => format!("1 trial lacks a result and runs again: {}", name(key)),
            keys => {
                let names = named(keys.iter().map(name));
                format!("{} trials lack a result and run again: {names}", keys.len())
            }
        };
        format!("{}; {trials}", self.describe())
    }
}

fn name(key: &TrialKey) -> String {
    format!("{}/{}/{}", key.target, key.case, key.trial)
}

/// Joins the first names.
fn named(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = if names.len() > MAX_NAMED { ", …" } else { "" };
    format!("{}{more}", names.take(MAX_NAMED).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_names_lines_and_trials() {
        let key = |trial| TrialKey { target: "t".into(), case: "c".into(), trial };
        let one = JournalDamage { lines: vec![7], ..JournalDamage::default() };
        assert_eq!(
            one.describe_with(&[key(1)]),
            "journal.jsonl: skipped the unreadable line 7; 1 trial lacks a result and runs again: t/c/1"
        );
        let many =
            JournalDamage { lines: (1..=11).collect(), is_torn: true, ..JournalDamage::default() };
        assert_eq!(
            many.describe_with(&[key(1), key(2)]),
            "journal.jsonl: skipped 11 unreadable lines (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, …), skipped the \
             incomplete last line; 2 trials lack a result and run again: t/c/1, t/c/2"
        );
    }
}
