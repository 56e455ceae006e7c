// Without the fonts that the theme brings: the system has some, and the site stays small.
import theme from 'vitepress/theme-without-fonts';
import './style.css';

export default theme;
