//! `bakeoff sim`: serves the simulated provider over HTTP.

use crate::arguments::SimArguments;
use crate::error::{CliError, UsageError};
use crate::outcome::{EventFields, Outcome};
use crate::printer::{Printer, chain};
use crate::settings;
use crate::shutdown::{Shutdown, block_on};
use bakeoff_sim::{Config, Engine, Latency, Profile, Server};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

pub(super) fn run(arguments: &SimArguments, printer: &Printer) -> Result<Outcome, CliError> {
    settings::raise_file_limit();
    let profile = arguments.profile.as_deref().map(first_profile).transpose()?;
    let mut config = Config::default().seed(arguments.seed).behaviours(crate::models::simulated());
    config.profile = profile;
    config.latency = arguments.latency_ms.map(|ms| Latency::Fixed { ms: ms.into() });
    let engine = Engine::new(config);
    let address = SocketAddr::new(arguments.host, arguments.port);
    block_on(printer, async |shutdown| {
        serve(Arc::new(engine), address, &shutdown, printer).await.map_err(|error| {
            CliError::Internal {
                message: format!("cannot serve on {address}: {error}"),
                hint: Some("the port may be in use; `--port 0` selects a free one".to_owned()),
                result: EventFields::new(),
            }
        })
    })?;
    // A signal is the usual way to end the server.
    Ok(Outcome::passed())
}

async fn serve(
    engine: Arc<Engine>,
    address: SocketAddr,
    shutdown: &Shutdown,
    printer: &Printer,
) -> std::io::Result<()> {
    let server = Server::bind(engine, address).await?;
    let address = server.local_addr();
    printer.data(format!("http://{address}/v1"));
    printer.message(format!(
        "serving the simulated provider; counters at http://{address}/stats; Ctrl-C stops it"
    ));
    server.run(shutdown.stop_token().cancelled_owned()).await
}

fn first_profile(path: &Path) -> Result<Profile, UsageError> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        UsageError::new(format!("cannot read the profile {}: {error}", path.display()))
    })?;
    let profiles = Profile::parse_file_text(&text)
        .map_err(|error| UsageError::new(format!("{}: {}", path.display(), chain(&error))))?;
    let first = profiles.into_iter().next();
    first.ok_or_else(|| UsageError::new(format!("{}: no [[profile]]", path.display())))
}
