//! `bakeoff probe`: how much of a model can be used?

mod shown;

use crate::arguments::ProbeArguments;
use crate::printer::{Printer, chain};
use crate::{models, settings};
use bakeoff_core::{ErrorKind, ExitCode, NanoDollars, Redactor};
use bakeoff_llm::probe::{ProbeConfig, ProbeReport, probe};
use bakeoff_llm::{CallError, Client, ClientConfig, Model};
use std::io::{BufRead, IsTerminal};

pub(crate) fn run(arguments: &ProbeArguments, printer: &Printer) -> ExitCode {
    settings::raise_file_limit();
    let known = match models::known(arguments.suite.as_deref(), printer) {
        Ok(known) => known,
        Err(code) => return code,
    };
    let named = models::resolve(&arguments.model, &known, arguments.base_url.as_deref());
    let model = match named {
        Ok(model) => model,
        Err(refused) => return refused.show(printer),
    };
    let mut config = ProbeConfig::default()
        .max_requests(arguments.max_requests)
        .max_connections(arguments.max_connections)
        .max_time(arguments.max_seconds)
        .max_tokens(arguments.max_tokens);
    config.max_cost = arguments.max_cost;
    if let Some(prompt) = &arguments.prompt {
        config.prompt.clone_from(prompt);
    }
    if let Err(code) = may_spend(&model, &config, arguments, printer) {
        return code;
    }
    let mut redactor = Redactor::default();
    model.add_secrets(&mut redactor);
    let simulator =
        bakeoff_sim::Config { models: known.simulated, ..bakeoff_sim::Config::default() };
    let client = Client::new(
        ClientConfig::default()
            .redactor(redactor)
            .simulator(simulator)
            .simulated_models(models::simulated()),
    );
    let mut on_level = |level: &bakeoff_llm::probe::ProbeLevel| {
        if !arguments.json {
            printer.talk(shown::progress(level));
        }
    };
    let work = async {
        tokio::select! {
            report = probe(&client, &model, &config, &mut on_level) => Some(report),
            Ok(()) = tokio::signal::ctrl_c() => None,
        }
    };
    match super::block_on(printer, work) {
        Ok(Some(Ok(report))) => {
            show(&model, &report, arguments.json, printer);
            match report.recommendation {
                Some(_) => ExitCode::Passed,
                None => ExitCode::Inconclusive,
            }
        }
        Ok(Some(Err(error))) => refused(&error, printer),
        Ok(None) => ExitCode::Interrupted,
        Err(code) => code,
    }
}

/// Says what the probe may spend, and asks. What is simulated costs nothing.
fn may_spend(
    model: &Model,
    config: &ProbeConfig,
    arguments: &ProbeArguments,
    printer: &Printer,
) -> Result<(), ExitCode> {
    let price = model.cost(&config.usage());
    if arguments.max_cost.is_some() && price.is_none() {
        printer.error(
            format!("nobody knows the price of {}, so --max-cost cannot be kept", model.name()),
            Some("give `prices` in a suite and use `--suite`, or bound it by `--max-requests`"),
        );
        return Err(ExitCode::Usage);
    }
    if model.is_simulated() {
        return Ok(());
    }
    let most = price.map(|price| {
        let all = NanoDollars(price.0.saturating_mul(config.max_requests.into()));
        config.max_cost.map_or(all, |bound| if bound.0 < all.0 { bound } else { all })
    });
    let cost = most.map_or("price unknown".to_owned(), |most| format!("at most {most}"));
    let usage = config.usage();
    printer.talk(format!(
        "up to {} requests to {}, each about {} tokens in and at most {} out: {cost}",
        config.max_requests,
        model.name(),
        usage.input,
        usage.output,
    ));
    if arguments.yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        printer.error(
            "a probe spends money, and there is nobody to ask",
            Some("`--yes` spends without asking"),
        );
        return Err(ExitCode::Usage);
    }
    printer.talk("go on? [y/N]");
    let mut answer = String::new();
    let read = std::io::stdin().lock().read_line(&mut answer);
    let is_yes = matches!(answer.trim().to_lowercase().as_str(), "y" | "yes");
    if read.is_ok() && is_yes { Ok(()) } else { Err(ExitCode::Usage) }
}

fn show(model: &Model, report: &ProbeReport, json: bool, printer: &Printer) {
    if json {
        printer.json(&shown::json(model.name(), report));
    } else {
        shown::lines(model.name(), report).iter().for_each(|line| printer.data(line));
    }
}

fn refused(error: &CallError, printer: &Printer) -> ExitCode {
    let hint = match error.failure.kind {
        ErrorKind::Auth => Some("check the key, and that it may use this model"),
        ErrorKind::InvalidRequest => Some("check the model's name and the address"),
        _ => None,
    };
    printer.error(chain(error), hint);
    ExitCode::Usage
}
