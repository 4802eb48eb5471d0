//! `bakeoff-bench pace`.

use crate::arguments::PaceArguments;
use crate::printer::{Printer, chain};
use bakeoff_bench::Error;
use bakeoff_bench::pace::{
    Contender, Group, Network, PaceConfig, PaceRow, PaceSummary, RandomKinds, compare,
    random_profiles, summarise, table,
};
use bakeoff_bench::{HttpConfig, HttpRow, over_http};
use bakeoff_core::ExitCode;
use bakeoff_sim::Profile;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde_json::json;
use std::path::{Path, PathBuf};

pub(super) fn run(arguments: &PaceArguments, printer: &Printer) -> ExitCode {
    let mut profiles = Vec::new();
    for path in &arguments.profiles {
        match read_profiles(path) {
            Ok(more) => profiles.extend(more),
            Err(message) => return printer.usage_error(&message, None),
        }
    }
    if let Some(count) = arguments.random {
        profiles.extend(random_profiles(count, arguments.seed, RandomKinds::Classic));
    }
    if let Some(count) = arguments.random_world {
        profiles.extend(random_profiles(count, arguments.seed, RandomKinds::World));
    }
    if profiles.is_empty() {
        profiles = table();
    }
    let contenders = match arguments.policies.as_slice() {
        [] => Contender::ALL.to_vec(),
        chosen => chosen.to_vec(),
    };
    let (seeds, ceiling) = (arguments.seeds, arguments.ceiling);
    let network = arguments.network_ms.map_or(Network::Local, |ms| Network::Jittered(ms.into()));
    let config = PaceConfig { profiles, contenders, seeds, ceiling, network };
    let bar = progress_bar(&config);
    let rows = compare(&config, &|done, _| bar.set_position(done as u64));
    bar.finish_and_clear();
    if arguments.json {
        rows.iter().for_each(|row| printer.json(&as_json(row)));
    } else {
        as_lines(&rows, &config).iter().for_each(|line| printer.data(line));
    }
    ExitCode::Passed
}

/// Reads all profiles of a file; the error is a message.
fn read_profiles(path: &Path) -> Result<Vec<Profile>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the profile {}: {error}", path.display()))?;
    Profile::parse_file_text(&text)
        .map_err(|error| format!("{}: {}", path.display(), chain(&error)))
}

pub(super) fn run_http(
    arguments: &PaceArguments,
    program: PathBuf,
    printer: &Printer,
) -> Result<(), Error> {
    printer.message("measuring; this takes a few minutes");
    let rows = over_http(&HttpConfig { program, calls: arguments.calls })?;
    if arguments.json {
        for row in &rows {
            printer.json(&json!({
                "profile": row.profile,
                "policy": "auto",
                "efficiency": row.efficiency(),
                "rejections_per_success": row.rejections_per_success,
                "lost": row.lost,
                "seconds": row.seconds,
            }));
        }
    } else {
        printer.data(HttpRow::header());
        rows.iter().for_each(|row| printer.data(row.to_string()));
    }
    Ok(())
}

fn progress_bar(config: &PaceConfig) -> ProgressBar {
    let total = config.profiles.len() * config.contenders.len();
    let bar = ProgressBar::with_draw_target(Some(total as u64), ProgressDrawTarget::stderr());
    // An invalid template keeps the default style.
    if let Ok(style) = ProgressStyle::with_template("{wide_bar} {pos} of {len} · {eta} left") {
        bar.set_style(style);
    }
    bar
}

fn as_json(row: &PaceRow) -> serde_json::Value {
    json!({
        "profile": row.profile,
        "policy": row.contender.to_string(),
        "efficiency": row.efficiency,
        "worst": row.worst,
        "rejections_per_success": row.rejections_per_success,
        "lost": row.lost,
        "seconds": row.seconds,
        "recovery_seconds": row.recovery_seconds,
    })
}

/// Width of a scheduler's column: `99.7/98.1 0.031`.
const COLUMN: usize = 18;

fn as_lines(rows: &[PaceRow], config: &PaceConfig) -> Vec<String> {
    let width = config.profiles.iter().map(|profile| profile.name.chars().count()).max();
    let width = width.unwrap_or(0).max(32);
    let names = |contenders: &[Contender]| -> String {
        contenders.iter().map(|contender| format!("  {contender:>COLUMN$}")).collect()
    };
    let mut lines = vec![
        format!(
            "mean efficiency / worst of {} seeds in %, rejections per success, L = items lost; at \
             most {} in flight",
            config.seeds, config.ceiling
        ),
        format!("{:<width$}{}", "", names(&config.contenders)),
    ];
    for rows in rows.chunk_by(|one, other| one.profile == other.profile) {
        let cells: String = rows.iter().map(|row| format!("  {:>COLUMN$}", cell(row))).collect();
        let name = rows.first().map_or("", |row| row.profile.as_str());
        lines.push(format!("{name:<width$}{cells}"));
    }
    let changing: Vec<&PaceRow> =
        rows.iter().filter(|row| row.recovery_seconds.is_some()).collect();
    if !changing.is_empty() {
        lines.push(String::new());
        lines.push(format!("{:<width$}", "seconds until 90 % of a changed rate are used"));
        for rows in changing.chunk_by(|one, other| one.profile == other.profile) {
            let cells: String = config
                .contenders
                .iter()
                .map(|contender| {
                    let row = rows.iter().find(|row| row.contender == *contender);
                    let text = row.and_then(|row| row.recovery_seconds);
                    format!("  {:>COLUMN$}", text.map_or("-".into(), |text| format!("{text:.1}")))
                })
                .collect();
            let name = rows.first().map_or("", |row| row.profile.as_str());
            lines.push(format!("{name:<width$}{cells}"));
        }
    }
    lines.push(String::new());
    lines.push(format!(
        "{:<24}{:>12}{:>8}{:>8}{:>8}{:>8}{:>12}{:>6}",
        "limits", "scheduler", "mean", "median", "5th", "worst", "rejections", "lost"
    ));
    lines.extend(summarise(rows).iter().map(summary_line));
    lines
}

fn cell(row: &PaceRow) -> String {
    let lost = if row.lost > 0 { format!(" L{}", row.lost) } else { String::new() };
    format!(
        "{:.1}/{:.1} {:.3}{lost}",
        row.efficiency * 100.0,
        row.worst * 100.0,
        row.rejections_per_success
    )
}

fn summary_line(summary: &PaceSummary) -> String {
    let group = match summary.group {
        Group::Announced => "limits in headers",
        Group::Unannounced => "no headers",
        Group::All => "all",
    };
    format!(
        "{:<24}{:>12}{:>8.1}{:>8.1}{:>8.1}{:>8.1}{:>12.4}{:>6}",
        format!("{group} ({})", summary.profiles),
        summary.contender.to_string(),
        summary.mean * 100.0,
        summary.median * 100.0,
        summary.fifth_percentile * 100.0,
        summary.worst * 100.0,
        summary.rejections_per_success,
        summary.lost,
    )
}
