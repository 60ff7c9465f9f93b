//! The proxies whose questions the guard answers.

use http::{HeaderName, StatusCode};
use http_body_util::Full;
use serde::Deserialize;

use crate::http::answer::Answer;

/// A proxy that asks the guard whether a request may pass. The row of a proxy ([`ProxyRow`]) says where a question of
/// the proxy has the request of the client, and which answers the proxy understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum OtherProxy {
    /// The module `auth_request` of nginx. nginx sends no refusal of the guard to the client: nginx understands only
    /// the status of the answer.
    Nginx,
    /// The middleware `forwardAuth` of Traefik.
    Traefik,
    /// The directive `forward_auth` of Caddy.
    Caddy,
    /// The filter `ext_authz` of Envoy with an HTTP service.
    Envoy,
    /// HAProxy with the Lua script of the documentation.
    Haproxy,
}

/// The place of the client's request in a question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum RequestPlace {
    /// The question has the method and the target of the request.
    Question,
    /// Two headers of the question have the target and the method of the request.
    Headers {
        /// The name of the header with the path and the query.
        target: HeaderName,
        /// The name of the header with the method.
        method: HeaderName,
    },
}

const ORIGINAL: RequestPlace = RequestPlace::Headers {
    target: HeaderName::from_static("x-original-uri"),
    method: HeaderName::from_static("x-original-method"),
};
const FORWARDED: RequestPlace = RequestPlace::Headers {
    target: HeaderName::from_static("x-forwarded-uri"),
    method: HeaderName::from_static("x-forwarded-method"),
};

/// The properties of a proxy.
struct ProxyRow {
    name: &'static str,
    request_place: RequestPlace,
    sends_refusals: bool,
    passes_bodies: bool,
}

impl OtherProxy {
    /// Returns the row of the proxy.
    fn row(self) -> ProxyRow {
        match self {
            Self::Nginx => ProxyRow {
                name: "nginx",
                request_place: ORIGINAL,
                sends_refusals: false,
                passes_bodies: false,
            },
            Self::Traefik => ProxyRow {
                name: "traefik",
                request_place: FORWARDED,
                sends_refusals: true,
                passes_bodies: false,
            },
            Self::Caddy => ProxyRow {
                name: "caddy",
                request_place: FORWARDED,
                sends_refusals: true,
                passes_bodies: false,
            },
            Self::Envoy => ProxyRow {
                name: "envoy",
                request_place: RequestPlace::Question,
                sends_refusals: true,
                passes_bodies: true,
            },
            Self::Haproxy => ProxyRow {
                name: "haproxy",
                request_place: ORIGINAL,
                sends_refusals: true,
                passes_bodies: false,
            },
        }
    }

    /// Returns the name of the proxy in the configuration.
    pub(crate) fn name(self) -> &'static str {
        self.row().name
    }

    /// Returns the place of the client's request in a question of the proxy.
    pub(crate) fn request_place(self) -> RequestPlace {
        self.row().request_place
    }

    /// Tests whether the proxy sends the refusal of the guard to the client.
    pub(crate) fn sends_refusals(self) -> bool {
        self.row().sends_refusals
    }

    /// Tests whether the proxy can pass the bodies of requests on.
    pub(crate) fn passes_bodies(self) -> bool {
        self.row().passes_bodies
    }

    /// Returns the refusal in the form that the proxy understands. `auth_request` of nginx understands 401 and 403; any
    /// other status is an error for nginx.
    pub(crate) fn refusal(self, mut refusal: Answer) -> Answer {
        if !self.sends_refusals() {
            *refusal.status_mut() = StatusCode::FORBIDDEN;
            *refusal.body_mut() = Full::default();
            refusal.headers_mut().remove(http::header::CONTENT_TYPE);
        }
        // A configuration with such a refusal is rejected at the start. A reload may change the routes while the
        // authorizer still answers another proxy.
        if refusal.status().is_success() {
            *refusal.status_mut() = StatusCode::FORBIDDEN;
        }
        refusal
    }
}
