//! `bakeoff-bench race`.

use super::{MEGABYTE, block_on};
use crate::arguments::RaceArguments;
use crate::printer::Printer;
use bakeoff_bench::{BetterAnswerPosition, BiasReport, Error, RaceConfig, RaceReport, race};
use serde_json::{Value, json};

pub(crate) fn run(arguments: &RaceArguments, printer: &Printer) -> Result<(), Error> {
    let &RaceArguments { races, bias, noise, json } = arguments;
    let config = RaceConfig { races, bias, noise };
    let mut announce = |stage: &str| printer.message(format!("measuring: {stage}"));
    let report = block_on(race(&config, &mut announce))?;
    if json {
        printer.json(&as_json(&report, &config));
    } else {
        as_lines(&report, &config).iter().for_each(|line| printer.data(line));
    }
    Ok(())
}

fn percent(part: u64, total: u64) -> f64 {
    100.0 * part as f64 / total.max(1) as f64
}

fn as_lines(report: &RaceReport, config: &RaceConfig) -> Vec<String> {
    let mut lines = bias_lines(&report.bias, config);
    lines.push(String::new());
    lines.push("majority of up to 15 answers, compared with all 15".to_owned());
    lines.push("right  calls  saved  correct  correct with all".to_owned());
    lines.extend(report.votes.iter().map(|row| {
        format!(
            "{:>5}  {:>5.1}  {:>4.1} %  {:>5.1} %  {:>14.1} %",
            row.right,
            row.calls as f64 / row.races as f64,
            percent(row.full_calls - row.calls, row.full_calls),
            percent(row.correct, row.races),
            percent(row.full_correct, row.races),
        )
    }));
    let cap = &report.cap;
    lines.push(String::new());
    lines.push(format!(
        "{} concurrent races, {} branches, concurrency limit {}: {} lost, {} rejected, {:.2} s (ideal {:.2} s)",
        cap.races, cap.branches, cap.cap, cap.lost, cap.rejected, cap.seconds, cap.ideal_seconds
    ));
    lines.push(String::new());
    lines.push("races  memory MB  tasks".to_owned());
    lines.extend(report.memory.iter().map(|row| {
        let megabytes = row.resident_bytes as f64 / MEGABYTE;
        format!("{:>5}  {megabytes:>9.1}  {:>5}", row.races, row.tasks)
    }));
    lines
}

fn position_label(position: BetterAnswerPosition) -> &'static str {
    match position {
        BetterAnswerPosition::Random => "anywhere",
        BetterAnswerPosition::Second => "second",
    }
}

fn bias_lines(report: &BiasReport, config: &RaceConfig) -> Vec<String> {
    let mut lines = vec![
        format!(
            "{} races of two answers; judge bias {} for the first, noise {} (standard deviation)",
            config.races, config.bias, config.noise
        ),
        format!(
            "{:<8}  {:<28}  {:>11}  {:>6}  {:>5}  {:>7}",
            "better", "method", "better wins", "ties", "calls", "p"
        ),
    ];
    lines.extend(report.rows.iter().map(|row| {
        format!(
            "{:<8}  {:<28}  {:>9.1} %  {:>4.1} %  {:>5.2}  {:>7.1e}",
            position_label(row.position),
            row.method,
            percent(row.better, row.races),
            percent(row.ties, row.races),
            row.calls as f64 / row.races as f64,
            row.p_value,
        )
    }));
    lines.push(format!(
        "judge that always prefers the first: {:.1} % ties, {:.1} % won by the answer with fewer tokens",
        percent(report.blind_ties, report.blind),
        percent(report.blind_cheaper, report.blind),
    ));
    lines
}

fn as_json(report: &RaceReport, config: &RaceConfig) -> Value {
    let bias: Vec<Value> = (report.bias.rows.iter())
        .map(|row| {
            json!({
                "better": position_label(row.position), "asked": row.method, "races": row.races,
                "better_wins": row.better, "ties": row.ties, "calls": row.calls,
                "p_value": row.p_value,
            })
        })
        .collect();
    let votes: Vec<Value> = (report.votes.iter())
        .map(|row| {
            json!({
                "right": row.right, "races": row.races, "calls": row.calls,
                "full_calls": row.full_calls, "correct": row.correct,
                "full_correct": row.full_correct,
            })
        })
        .collect();
    let memory: Vec<Value> = (report.memory.iter())
        .map(|row| {
            json!({ "races": row.races, "resident_bytes": row.resident_bytes, "tasks": row.tasks })
        })
        .collect();
    let cap = &report.cap;
    json!({
        "bias": config.bias, "noise": config.noise, "judged": bias,
        "blind": {
            "races": report.bias.blind, "ties": report.bias.blind_ties,
            "won_by_fewer_tokens": report.bias.blind_cheaper,
        },
        "votes": votes,
        "cap": {
            "races": cap.races, "branches": cap.branches, "cap": cap.cap, "lost": cap.lost,
            "rejected": cap.rejected, "seconds": cap.seconds, "ideal_seconds": cap.ideal_seconds,
        },
        "memory": memory,
    })
}
