//! `bakeoff tune`: changes the limits of a running run.

use crate::arguments::TuneArguments;
use crate::error::{CliError, UsageError};
use crate::outcome::Outcome;
use crate::printer::Printer;
use bakeoff_eval::{JOURNAL_FILE, RunFile, TuneError, TuneReply, TuneRequest, TunedPool, tune};
use bakeoff_history::find_run;
use bakeoff_journal::is_open;
use serde_json::json;

pub(super) fn run(arguments: &TuneArguments, printer: &Printer) -> Result<Outcome, CliError> {
    let folder = find_run(&arguments.run.out, &arguments.run.run)?;
    let id = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let socket = RunFile::read(&folder)?.control_socket;
    let request = TuneRequest {
        model: arguments.model.clone(),
        max_connections: arguments.max_connections,
        rpm: arguments.rpm,
        paused: (arguments.pause || arguments.resume).then_some(arguments.pause),
    };
    let reply = match socket {
        Some(socket) => tune(&socket, &request),
        None => Err(TuneError::NoSocket),
    };
    let TuneReply { pools, .. } = reply.map_err(|error| match error {
        TuneError::NoSocket if is_open(&folder.join(JOURNAL_FILE)) => UsageError::new(format!(
            "run {id} is running, but it has no control socket, so its limits cannot change"
        ))
        .hint("the run printed a warning with the reason [EVAL_NO_CONTROL], or it is about to end")
        .into(),
        TuneError::NoSocket => UsageError::new(format!("run {id} is not running"))
            .hint("limits of a finished run cannot change; set them when you start or resume it")
            .into(),
        TuneError::Rejected(reason) => CliError::from(UsageError::new(reason)),
        TuneError::OtherUser => UsageError::new(format!("run {id} belongs to another user")).into(),
        other => CliError::internal(format!("run {id}: {other}")),
    })?;
    for pool in &pools {
        match printer.is_json() {
            true => printer.event("pool", json!(pool)),
            false => printer.data(line(pool, arguments.rpm)),
        }
    }
    Ok(Outcome::passed().with("pools", pools.len()))
}

fn line(pool: &TunedPool, rpm: Option<u64>) -> String {
    let limit = match (pool.paused, pool.limit) {
        (true, _) => "paused".to_owned(),
        (false, Some(limit)) => format!("at most {limit} in flight"),
        (false, None) => "no concurrency limit".to_owned(),
    };
    let rate = rpm.map_or(String::new(), |rpm| format!(" · {rpm} requests per minute"));
    format!("{}  {limit}{rate} · {} in flight now", pool.model, pool.in_flight)
}
