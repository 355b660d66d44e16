// (to be written)
/** Keeps the state of the view in the URL's hash. */
export function keepLink(app) {
  return app;
}
