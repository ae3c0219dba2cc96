// Save what is shown as a file.
export function save(name, content, type) {
  const blob = content instanceof Blob ? content : new Blob([content], { type });
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

export function csv(columns) {
  const names = Object.keys(columns);
  const rows = columns[names[0]]?.length ?? 0;
  const lines = [names.map(cell).join(",")];
  for (let row = 0; row < rows; row += 1) lines.push(names.map((name) => cell(columns[name][row])).join(","));
  return `${lines.join("\n")}\n`;
}

function cell(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "number") return String(value);
  // A leading sign would make a spreadsheet run it as a formula.
  const text = /^[=+\-@\t]/.test(value) ? `'${value}` : String(value);
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
