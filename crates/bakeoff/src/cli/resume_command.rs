//! Hints with the exact command that resumes an interrupted job.

use crate::printer::Printer;
use crate::settings;
use std::path::Path;

/// Options with a value that must not be repeated: they name other runs.
const RUN_OPTIONS: [&str; 2] = ["--resume", "--failed-of"];

/// Prints the command that resumes a run or a search in this folder with the settings of this process.
pub(crate) fn hint_at_resume(out: &Path, run: &Path, printer: &Printer) {
    let name = match run.file_name() {
        Some(name) if run.parent() == Some(out) => Path::new(name),
        _ => run,
    };
    let words = without_run_options(settings::command_line());
    let resume = ["--resume".to_owned(), name.display().to_string()];
    // Directly after the name of the command, because a `--` may follow.
    let head = words.iter().take(2).cloned();
    let words = head.chain(resume).chain(words.iter().skip(2).cloned());
    print(words, printer);
}

/// Prints the command of this process, which resumes its output file.
pub(crate) fn hint_at_same_command(printer: &Printer) {
    // `--force` starts over.
    print(settings::command_line().into_iter().filter(|word| word != "--force"), printer);
}

/// Prints the command that resumes an interrupted race with these arguments.
pub(crate) fn hint_at_race(arguments: &[String], printer: &Printer) {
    let command = ["bakeoff", "race"].map(str::to_owned);
    print(command.into_iter().chain(arguments.iter().cloned()), printer);
}

fn print(words: impl IntoIterator<Item = String>, printer: &Printer) {
    let arguments = words.into_iter().skip(1).map(|word| shell_word(&word));
    let command: Vec<String> = ["bakeoff".to_owned()].into_iter().chain(arguments).collect();
    printer.hint(format!("`{}` resumes it", command.join(" ")));
}

fn without_run_options(words: Vec<String>) -> Vec<String> {
    let mut kept = Vec::with_capacity(words.len());
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        match word.split_once('=') {
            _ if RUN_OPTIONS.contains(&word.as_str()) => drop(words.next()),
            Some((option, _)) if RUN_OPTIONS.contains(&option) => {}
            _ => kept.push(word),
        }
    }
    kept
}

/// Quotes a word for POSIX shells where necessary.
fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_that_name_runs_are_left_out() {
        let words = "run a.toml --resume last --failed-of=old --max-cost 1 --resume=x";
        let words = words.split(' ').map(str::to_owned).collect();
        assert_eq!(without_run_options(words).join(" "), "run a.toml --max-cost 1");
    }

    #[test]
    fn words_are_quoted_for_the_shell() {
        for (word, quoted) in [
            ("gpt-4o_mini=a/b.c", "gpt-4o_mini=a/b.c"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$HOME*", "'$HOME*'"),
        ] {
            assert_eq!(shell_word(word), quoted);
        }
    }
}
