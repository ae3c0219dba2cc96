// Exponential smoothing without the bias of its first value, by points and not by distance, as other tools do it.
export function smoothed(values, weight) {
  if (!weight) return values;
  let sum = 0;
  let share = 0;
  return values.map((value) => {
    if (value === null || value === undefined || !Number.isFinite(value)) return value;
    sum = weight * sum + (1 - weight) * value;
    share = weight * share + (1 - weight);
    return sum / share;
  });
}
