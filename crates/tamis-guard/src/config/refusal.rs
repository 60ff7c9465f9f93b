//! Parses the response to a refused request.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, StatusCode};
use serde_json::json;

use crate::config::file;
use crate::config::setting::{InvalidValue, invalid};
use crate::request::cors::Cors;
use crate::request::refusal::Refusal;

/// Creates the refusal response of a route.
pub(super) fn refusal(config: &file::Refusal) -> Result<Refusal, InvalidValue> {
    let status = config.status.unwrap_or(404);
    let status = StatusCode::from_u16(status).ok().filter(|it| (200..600).contains(&it.as_u16()));
    let status = status.ok_or_else(|| invalid("status", "write a status from 200 to 599"))?;
    let mut refusal = match &config.body {
        Some(_) if config.code.is_some() || config.message.is_some() => {
            let message = "write either `body`, or `code` and `message`";
            return Err(invalid("body", message));
        }
        Some(body) => Refusal { body: Bytes::from(body.clone()), ..Refusal::default() },
        None => {
            let code = config.code.unwrap_or(status.as_u16().into());
            let message = config.message.as_deref().unwrap_or("not found");
            Refusal::json(&json!({ "code": code, "message": message }).to_string())
        }
    };
    refusal.status = status;
    for (name, value) in &config.headers {
        let malformed = |what| invalid("headers", format!("{name:?} is not a valid {what}"));
        let header: HeaderName = name.parse().map_err(|_| malformed("name of a header"))?;
        let length = [http::header::CONTENT_LENGTH, http::header::TRANSFER_ENCODING];
        if length.contains(&header) {
            return Err(invalid("headers", format!("{name} follows from the body; leave it out")));
        }
        let value = HeaderValue::from_str(value).map_err(|_| malformed("header"))?;
        refusal.headers.insert(header, value);
    }
    refusal.retry_after = config.retry_after.unwrap_or(refusal.retry_after);
    refusal.cors = config.cors.as_ref().map(cors).transpose()?;
    Ok(refusal)
}

fn cors(config: &file::Cors) -> Result<Cors, InvalidValue> {
    let origins = config.origins.clone().into_vec();
    if origins == ["*"] {
        if config.credentials {
            let message = "browsers do not accept * with credentials: list the origins";
            return Err(invalid("cors.origins", message));
        }
        return Ok(Cors::default());
    }
    let origin = |origin: &String| {
        let host = origin.strip_prefix("https://").or_else(|| origin.strip_prefix("http://"));
        let is_origin = host.is_some_and(|it| !it.is_empty() && !it.contains(['/', '*', '@']))
            && *origin == origin.to_ascii_lowercase();
        let value = HeaderValue::from_str(origin).ok().filter(|_| is_origin);
        let expected =
            "is not \"*\" and not an origin in lower case such as https://shop.example.com";
        value.ok_or_else(|| invalid("cors.origins", format!("{origin:?} {expected}")))
    };
    let origins = origins.iter().map(origin).collect::<Result<Vec<_>, _>>()?;
    if origins.is_empty() {
        return Err(invalid("cors.origins", "write \"*\" or a list of origins"));
    }
    Ok(Cors { origins, has_credentials: config.credentials })
}
