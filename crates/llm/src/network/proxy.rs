//! Environment variables that name proxies.
//!
//! The HTTP library reads them itself and ignores values that it cannot use. Requests would then bypass the
//! proxy silently, so the values are checked here.

use super::failure::{Destination, unusable_proxy};
use crate::transport::TransportError;
use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use url::Url;

const HTTPS_NAMES: [&str; 2] = ["HTTPS_PROXY", "https_proxy"];
const HTTP_NAMES: [&str; 2] = ["HTTP_PROXY", "http_proxy"];
const ALL_NAMES: [&str; 2] = ["ALL_PROXY", "all_proxy"];
const NO_PROXY_NAMES: [&str; 2] = ["NO_PROXY", "no_proxy"];

/// Set for CGI programs, where a request header could set `HTTP_PROXY`; the HTTP library then uses no proxy.
const CGI_NAME: &str = "REQUEST_METHOD";

/// Finds the proxy of a URL.
///
/// # Errors
///
/// When the variable that applies is not the URL of an HTTP proxy. The message does not contain the value,
/// because it may contain a password.
pub(super) fn destination(
    url: &Url,
    environment: &dyn Fn(&str) -> Option<String>,
) -> Result<Destination, TransportError> {
    let mut destination = Destination { url: url.clone(), proxy: None };
    let first = |names: [&'static str; 2]| {
        names.into_iter().find_map(|name| environment(name).map(|value| (name, value)))
    };
    let no_proxy = first(NO_PROXY_NAMES).map_or(String::new(), |(_, value)| value);
    if environment(CGI_NAME).is_some() || is_exempt(url, &no_proxy) {
        return Ok(destination);
    }
    let names = if url.scheme() == "https" { HTTPS_NAMES } else { HTTP_NAMES };
    let set = |names| first(names).filter(|(_, value)| !value.is_empty());
    let Some((name, value)) = set(names).or_else(|| set(ALL_NAMES)) else {
        return Ok(destination);
    };
    destination.proxy = Some(name);
    match check(&value) {
        Ok(()) => Ok(destination),
        Err(problem) => Err(unusable_proxy(&destination, problem)),
    }
}

/// Whether `NO_PROXY` names the host of a URL.
fn is_exempt(url: &Url, no_proxy: &str) -> bool {
    let Ok(uri) = url.as_str().parse::<Uri>() else { return false };
    let matcher = Matcher::builder().all("http://proxy").no(no_proxy).build();
    matcher.intercept(&uri).is_none()
}

fn check(value: &str) -> Result<(), String> {
    let malformed = || "not a URL of the form http://HOST:PORT or https://HOST:PORT".to_owned();
    let uri: Uri = value.parse().map_err(|_| malformed())?;
    if let Some(scheme) = uri.scheme_str()
        && !matches!(scheme, "http" | "https")
    {
        return Err(format!("scheme `{scheme}` is not supported, only http and https"));
    }
    let authority = uri.authority().ok_or_else(malformed)?;
    let (_, host) = authority.as_str().rsplit_once('@').unwrap_or(("", authority.as_str()));
    // Colons within brackets belong to an IPv6 address.
    let port = host.rsplit_once(']').map_or(host, |(_, rest)| rest).rsplit_once(':');
    let has_bad_port = port.is_some_and(|(_, port)| port.parse::<u16>().is_err());
    match authority.host().is_empty() || has_bad_port {
        true => Err(malformed()),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(url: &str, variables: &[(&str, &str)]) -> Result<Option<&'static str>, String> {
        let environment = |name: &str| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        destination(&Url::parse(url).unwrap(), &environment)
            .map(|destination| destination.proxy)
            .map_err(|error| error.to_string())
    }

    const URL: &str = "https://api.example/v1";

    #[test]
    fn variable_that_applies_is_found() {
        type Variables = &'static [(&'static str, &'static str)];
        let table: [(&str, Variables, Option<&str>); 9] = [
            (URL, &[], None),
            (URL, &[("HTTPS_PROXY", "http://proxy:3128")], Some("HTTPS_PROXY")),
            (URL, &[("https_proxy", "proxy:3128")], Some("https_proxy")),
            (URL, &[("HTTPS_PROXY", "https://user:secret@proxy")], Some("HTTPS_PROXY")),
            (URL, &[("HTTPS_PROXY", ""), ("ALL_PROXY", "http://[::1]:1")], Some("ALL_PROXY")),
            (URL, &[("HTTP_PROXY", "http://proxy:3128")], None),
            ("http://api.example/", &[("HTTP_PROXY", "http://proxy")], Some("HTTP_PROXY")),
            (URL, &[("HTTPS_PROXY", ":::bad"), ("NO_PROXY", "other, .example")], None),
            (URL, &[("HTTPS_PROXY", ":::bad"), ("REQUEST_METHOD", "GET")], None),
        ];
        for (url, variables, expected) in table {
            assert_eq!(find(url, variables), Ok(expected), "{variables:?}");
        }
    }

    #[test]
    fn unusable_proxy_is_named_without_its_value() {
        let malformed = "not a URL of the form http://HOST:PORT or https://HOST:PORT";
        let socks = "scheme `socks5` is not supported, only http and https";
        let table = [
            ("HTTPS_PROXY", ":::bad", malformed),
            ("HTTPS_PROXY", "http://user:secret@", malformed),
            ("HTTPS_PROXY", "http://user:sec ret@proxy:1", malformed),
            ("HTTPS_PROXY", "http://proxy:secret", malformed),
            ("https_proxy", "http://proxy:65536", malformed),
            ("ALL_PROXY", "socks5://user:secret@proxy:1080", socks),
        ];
        for (name, value, problem) in table {
            let expected = format!("cannot use the proxy for api.example (from {name}): {problem}");
            assert_eq!(find(URL, &[(name, value)]), Err(expected), "{value}");
        }
    }
}
