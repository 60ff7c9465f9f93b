// The counters of the last minutes, from which the rates of the page follow.

const MOST_SAMPLES = 121;

/** Creates a history without samples. */
export function createHistory() {
  let samples = [];

  /** Returns the counter `group.name` or `name` of a route. */
  const read = (sample, route, path) => path.split(".").reduce((value, name) => value?.[name], sample.routes[route]) ?? 0;

  return {
    /** Adds a status. After a restart or a reload of the guard, the counters begin again, and so does the history. */
    add(status) {
      const last = samples.at(-1);
      const isSame = last && status.uptime_seconds >= last.uptime_seconds && status.routes.length === last.routes.length
        && status.routes.every((route, i) => route.name === last.routes[i].name && total(route) >= total(last.routes[i]));
      if (!isSame) samples = [];
      samples.push(status);
      samples = samples.slice(-MOST_SAMPLES);
    },

    /** Returns the changes of a counter per second, oldest first. */
    perSecond(route, path) {
      return samples.slice(1).map((sample, i) => {
        const seconds = sample.uptime_seconds - samples[i].uptime_seconds;
        return seconds > 0 ? (read(sample, route, path) - read(samples[i], route, path)) / seconds : 0;
      });
    },

    /** Returns the seconds between the first sample and the last one. */
    seconds() {
      return samples.length > 1 ? samples.at(-1).uptime_seconds - samples[0].uptime_seconds : 0;
    },
  };
}

const sum = (numbers) => Object.values(numbers).reduce((all, number) => all + number, 0);

/** Returns the requests of a route. */
export function total(route) {
  return sum(route.passed) + sum(route.refused);
}

/** Returns the sum of several series of the same length. */
export function sumOf(series) {
  return series.length === 0 ? [] : series[0].map((_, i) => series.reduce((all, one) => all + (one[i] ?? 0), 0));
}
