use std::time::{Duration, SystemTime};

use tamis::Window;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    // Remembers a message for at least one hour and at most two hours.
    let mut seen = Window::for_time(Duration::from_secs(3_600), 100_000, 0.01)?;
    for message in std::io::stdin().lines() {
        seen.advance(SystemTime::UNIX_EPOCH.elapsed()?.as_millis() as u64);
        let message = message?;
        if seen.insert(&message) {
            println!("alert: {message}");
        }
    }
    Ok(())
}
