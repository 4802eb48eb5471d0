//! `bakeoff probe`: measures the rate and concurrency limits of a model.

mod render;

use crate::arguments::ProbeArguments;
use crate::client::{ClientOptions, ModelClient};
use crate::confirm::confirm;
use crate::error::{CliError, UsageError};
use crate::models::ModelResolver;
use crate::outcome::Outcome;
use crate::printer::{Printer, chain};
use crate::settings;
use crate::shutdown::block_on;
use bakeoff_core::{ErrorKind, ExitCode, NanoDollars};
use bakeoff_llm::probe::{ProbeConfig, ProbeLevel, ProbeStop, probe};
use bakeoff_llm::{CallError, Model};

pub(super) fn run(arguments: &ProbeArguments, printer: &Printer) -> Result<Outcome, CliError> {
    settings::raise_file_limit();
    let resolver = ModelResolver {
        base_url: arguments.base_url.clone(),
        ..ModelResolver::new(arguments.suite.as_deref())?
    };
    let model = resolver.resolve(&arguments.model)?;
    let mut config = ProbeConfig::default()
        .max_requests(arguments.max_requests)
        .max_connections(arguments.max_connections)
        .max_time(arguments.max_seconds)
        .max_tokens(arguments.max_tokens);
    config.max_cost = arguments.max_cost;
    if let Some(prompt) = &arguments.prompt {
        config.prompt.clone_from(prompt);
    }
    confirm_cost(&model, &config, arguments, printer)?;
    // The probe finds the limits itself, so it uses neither the cache nor the limit history.
    let client = ModelClient::new([&model], resolver.defined, ClientOptions::default(), printer);
    let mut on_level = |level: &ProbeLevel| {
        printer.message(render::progress(level));
        printer.event("level", render::level_to_json(level));
    };
    let report = block_on(printer, async |shutdown| {
        config.stop = shutdown.stop_token();
        probe(&client.client, &model, &config, &mut on_level).await.map_err(rejected)
    })?;
    render::lines(model.name(), &report).iter().for_each(|line| printer.data(line));
    let code = match (report.stop, report.recommendation) {
        (Some(ProbeStop::Interrupted), _) => ExitCode::Interrupted,
        (_, Some(_)) => ExitCode::Passed,
        (_, None) => ExitCode::Inconclusive,
    };
    Ok(Outcome::new(code).with_fields(render::to_json(model.name(), &report)))
}

/// Prints what the probe may spend and asks for confirmation. Simulated models cost nothing.
fn confirm_cost(
    model: &Model,
    config: &ProbeConfig,
    arguments: &ProbeArguments,
    printer: &Printer,
) -> Result<(), UsageError> {
    let price = model.cost(&config.usage());
    if arguments.max_cost.is_some() && price.is_none() {
        let message = format!("no price known for {}; --max-cost needs one", model.name());
        return Err(UsageError::new(message).hint(
            "set `prices` in a suite and pass `--suite`, or limit the probe with `--max-requests`",
        ));
    }
    if model.is_simulated() {
        return Ok(());
    }
    let max_cost = price.map(|price| {
        let all = NanoDollars(price.0.saturating_mul(config.max_requests.into()));
        config.max_cost.map_or(all, |bound| if bound.0 < all.0 { bound } else { all })
    });
    let cost = max_cost.map_or("price unknown".to_owned(), |cost| format!("at most {cost}"));
    let usage = config.usage();
    printer.notice(format!(
        "up to {} requests to {}, each with about {} input and at most {} output tokens: {cost}",
        config.max_requests,
        model.name(),
        usage.input,
        usage.output,
    ));
    if arguments.yes {
        return Ok(());
    }
    confirm(printer)
}

fn rejected(error: CallError) -> UsageError {
    let hint = match error.failure.kind {
        ErrorKind::Auth => Some("check the API key and its access to this model"),
        ErrorKind::InvalidRequest => Some("check the model name and the base URL"),
        _ => None,
    };
    UsageError { message: chain(&error), hint: hint.map(str::to_owned) }
}
