//! Baseline for the engine benchmark: a bare `reqwest` loop that makes the same calls.

use crate::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Makes `calls` calls, `connections` at a time.
pub(crate) fn run(base_url: &str, calls: u32, connections: u32) -> Result<(), Error> {
    let failed = |error: &dyn std::fmt::Display| Error::Bare(error.to_string());
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .map_err(|error| failed(&error))?;
    // Fails if a provider is already installed, which works as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only([])
        .build()
        .map_err(|error| failed(&error))?;
    let url: Arc<str> = format!("{base_url}/chat/completions").into();
    let next = Arc::new(AtomicU32::new(0));
    runtime.block_on(async {
        let workers: Vec<_> = (0..connections)
            .map(|_| {
                let (client, url, next) = (client.clone(), Arc::clone(&url), Arc::clone(&next));
                tokio::spawn(async move {
                    loop {
                        let number = next.fetch_add(1, Ordering::Relaxed);
                        if number >= calls {
                            return Ok(());
                        }
                        let body = super::engine::request_body(number);
                        let request = client
                            .post(&*url)
                            .header("content-type", "application/json")
                            .body(body);
                        let response = request.send().await?.error_for_status()?;
                        response.bytes().await?;
                    }
                })
            })
            .collect();
        for worker in workers {
            let joined: Result<Result<(), reqwest::Error>, _> = worker.await;
            joined.map_err(|error| failed(&error))?.map_err(|error| failed(&error))?;
        }
        Ok(())
    })
}
