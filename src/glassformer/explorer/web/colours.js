// Colours of numbers. Probabilities: one hue, lightness that only rises or only falls, zero = the background. Signed
// values: purple below zero, orange above, equally strong for equal sizes.

const PROBABILITY = {
  light: ["#ffffff", "#c6dbef", "#6baed6", "#2171b5", "#08306b"],
  dark: ["#0f172a", "#1e3a5f", "#2f6f9f", "#6bb5d8", "#f0f9ff"],
};
const SIGNED = {
  light: ["#4a2a85", "#9a8cc4", "#ffffff", "#f1a457", "#9c4206"],
  dark: ["#d8ccf5", "#7a67b5", "#0f172a", "#b8681f", "#ffd9a8"],
};
const SHADES = 256;
const tables = new Map();

/** Returns 256 colours, each packed as in a canvas's pixels, of a scale ("probability" or "signed") in a theme. */
export function colourTable(scale, theme) {
  const key = `${scale} ${theme}`;
  if (!tables.has(key)) tables.set(key, blend((scale === "signed" ? SIGNED : PROBABILITY)[theme]));
  return tables.get(key);
}

/** Returns which of the 256 colours shows a value: a probability in [0, 1], or a signed one in [−largest, largest]. */
export function colourPlace(scale, value, largest = 1) {
  const share = scale === "signed" ? (value / (largest || 1) + 1) / 2 : value / (largest || 1);
  return Math.max(0, Math.min(SHADES - 1, Math.round(share * (SHADES - 1))));
}

/** Returns black or white, whichever can be read on this colour. */
export function inkOn(packed) {
  const [red, green, blue] = [packed & 255, (packed >> 8) & 255, (packed >> 16) & 255].map((part) => {
    const share = part / 255;
    return share <= 0.03928 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * red + 0.7152 * green + 0.0722 * blue > 0.18 ? "#000000" : "#ffffff";
}

/** Returns a packed colour as CSS has it. */
export function cssColour(packed) {
  return `rgb(${packed & 255} ${(packed >> 8) & 255} ${(packed >> 16) & 255})`;
}

function blend(stops) {
  const parts = stops.map((stop) => [1, 3, 5].map((at) => parseInt(stop.slice(at, at + 2), 16)));
  return Uint32Array.from({ length: SHADES }, (_, step) => {
    const place = (step / (SHADES - 1)) * (parts.length - 1);
    const low = Math.min(Math.floor(place), parts.length - 2);
    const [red, green, blue] = parts[low].map((from, part) =>
      Math.round(from + (parts[low + 1][part] - from) * (place - low)),
    );
    return (255 << 24) | (blue << 16) | (green << 8) | red;
  });
}
