// Sets the theme before the page is shown, so that the page does not first appear in the other theme.

function follow(): void {
  let chosen: string | null = null;
  try {
    // The pages of the site keep the reader's choice here: "dark", "light", or "auto" for the system's theme.
    chosen = localStorage.getItem('vitepress-theme-appearance');
  } catch {
    // If the browser stores nothing, the system's theme is used.
  }
  document.documentElement.dataset['theme'] = chosen === 'dark' || chosen === 'light' ? chosen : 'auto';
}

follow();
// Follow a choice made in another tab, or made before the browser went back to this page.
addEventListener('storage', follow);
addEventListener('pageshow', follow);
