//! `bakeoff sim`: the simulated provider over HTTP.

use crate::arguments::SimArguments;
use crate::printer::{Printer, chain};
use crate::settings;
use bakeoff_core::ExitCode;
use bakeoff_sim::{Config, Engine, Latency, Profile, Server};
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

pub(crate) fn run(arguments: &SimArguments, printer: &Printer) -> ExitCode {
    settings::raise_file_limit();
    let profile = match arguments.profile.as_deref().map(first_profile).transpose() {
        Ok(profile) => profile,
        Err(message) => {
            printer.error(message, None);
            return ExitCode::Usage;
        }
    };
    let engine = Engine::new(Config {
        seed: arguments.seed,
        profile,
        latency: arguments.latency_ms.map(|ms| Latency::Fixed { ms: ms.into() }),
        behaviours: crate::models::simulated(),
        ..Config::default()
    });
    let address = SocketAddr::new(arguments.host, arguments.port);
    let served = super::block_on(printer, serve(Arc::new(engine), address, printer));
    match served {
        Ok(Ok(())) => ExitCode::Passed,
        Ok(Err(error)) => {
            printer.error(
                format!("cannot serve on {address}: {error}"),
                Some("another program may use the port; `--port 0` takes a free one"),
            );
            ExitCode::Internal
        }
        Err(code) => code,
    }
}

async fn serve(engine: Arc<Engine>, address: SocketAddr, printer: &Printer) -> std::io::Result<()> {
    let server = Server::bind(engine, address).await?;
    let address = server.local_addr();
    printer.data(format!("http://{address}/v1"));
    printer.talk(format!("the simulated provider; http://{address}/stats counts; Ctrl-C ends it"));
    let interrupted = async {
        // Without signals it runs until it is killed.
        if tokio::signal::ctrl_c().await.is_err() {
            std::future::pending::<()>().await;
        }
    };
    server.run(interrupted).await
}

fn first_profile(path: &Path) -> Result<Profile, String> {
    read_profiles(path)?
        .into_iter()
        .next()
        .ok_or_else(|| format!("{}: there is no [[profile]]", path.display()))
}

/// All profiles of a file, or what is wrong with it.
pub(in crate::commands) fn read_profiles(path: &Path) -> Result<Vec<Profile>, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read the profile {}: {error}", path.display()))?;
    Profile::parse_file_text(&text)
        .map_err(|error| format!("{}: {}", path.display(), chain(&error)))
}
